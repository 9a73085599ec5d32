"""Processes are killed at random moments while runs go on: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.kafka_kills.site import TIMEOUT_S, Site
from tests.kafka_kills.truth import check_site
from tests.kafka_kills.workload import verified_in_all
from tests.servers.kafka_broker import Broker
from tests.support.scale import scale

VICTIMS = ("scheduler", "worker", "broker", "scheduler", "worker")
ROUNDS = scale(1, 10)
KILLS_A_ROUND = 2 * len(VICTIMS)
RUNS = 3
LONGEST_S = 1.2


async def kill(site: Site, broker: Broker, victim: str, chance: random.Random) -> None:
    """At some moment; and start another one, at once or a little later."""
    await asyncio.sleep(chance.uniform(0.05, LONGEST_S))
    if victim == "broker":
        await asyncio.to_thread(broker.kill)
        await asyncio.sleep(chance.choice((0.0, 0.5)))
        await asyncio.to_thread(broker.start)
        return
    await site.kill(chance.choice(site.of(victim)))
    await asyncio.sleep(chance.choice((0.0, 0.0, 2.0)))
    await site.begin(victim)


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_whoever_is_killed_every_run_ends_well_and_nothing_counts_twice(
    site: Site, broker: Broker, seed: int
) -> None:
    chance = random.Random(seed)
    for role in ("scheduler", "scheduler", "worker", "worker"):
        await site.begin(role)
    victims = list(VICTIMS) * (KILLS_A_ROUND // len(VICTIMS))
    chance.shuffle(victims)
    for number, victim in enumerate(victims):
        starting = [asyncio.create_task(site.start(f"{seed}/{number}/{run}")) for run in range(RUNS)]
        await kill(site, broker, victim, chance)
        async with asyncio.timeout(TIMEOUT_S):
            streams = list(await asyncio.gather(*starting))
        await site.ended(streams)
        assert [site.verified[stream] for stream in streams] == [verified_in_all()] * RUNS
        await check_site(site, images=False)
    assert await check_site(site) > 0, "snapshots were taken, and give the same state"
