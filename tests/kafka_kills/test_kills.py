"""Processes are killed while runs go on, at random moments and at each boundary: nothing is lost, and nothing counts
twice."""

from __future__ import annotations

import asyncio
import random

import pytest

from dagbok.agents import faultpoints
from tests.kafka_kills.site import TIMEOUT_S, Site
from tests.kafka_kills.tables import check_tables
from tests.kafka_kills.truth import check_site
from tests.kafka_kills.workload import verified_in_all
from tests.servers.kafka_broker import Broker
from tests.support.scale import scale

ROLES = ("scheduler", "worker", "verifier", "projector")
VICTIMS = (*ROLES, "broker")
ROUNDS = scale(1, 11)
KILLS_A_ROUND = scale(1, 2) * len(VICTIMS)
RUNS = 3
LONGEST_S = 1.2
CLOCKS_MS = (0, -120_000, 120_000)
"""How far the clocks of the processes are off."""
OFTEN, SELDOM = (3, 11)[: scale(1, 2)], (1, 2)
"""At which time a place kills. Each snapshot is due later than the one before."""

PLACES = (faultpoints.BATCH_APPENDED, *[place for place in faultpoints.ALL if place != faultpoints.BATCH_APPENDED])


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
    await _begin(site, victim, chance)


async def _begin(site: Site, role: str, chance: random.Random) -> None:
    await site.begin(role, MEMBER_CLOCK_MS=str(chance.choice(CLOCKS_MS)))


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_whoever_is_killed_every_run_ends_well_and_nothing_counts_twice(
    site: Site, broker: Broker, seed: int
) -> None:
    chance = random.Random(seed)
    for role in (*ROLES, "scheduler", "worker", "projector"):
        await _begin(site, role, chance)
    victims = list(VICTIMS) * (KILLS_A_ROUND // len(VICTIMS))
    chance.shuffle(victims)
    for number, victim in enumerate(victims):
        starting = [asyncio.create_task(site.start(f"{seed}/{number}/{run}")) for run in range(RUNS)]
        await kill(site, broker, victim, chance)
        await _all_is_well(site, starting)
    assert await check_site(site) > 0, "snapshots were taken, and give the same state"


@pytest.mark.parametrize("place", PLACES[: scale(1, len(PLACES))])
async def test_at_whichever_boundary_a_process_is_killed_and_the_broker_with_it_runs_end_well(
    site: Site, broker: Broker, place: str
) -> None:
    victim = "worker" if place.startswith(("worker", "outbox")) else "scheduler"
    for role in ROLES:
        if role != victim:
            await site.begin(role)
    for number, times in enumerate(SELDOM if place == faultpoints.CHUNKS_WRITTEN else OFTEN):
        dying = await site.begin(victim, DAGBOK_FAULT=f"{place}:{times}", MEMBER_SNAPSHOT_BYTES="2000")
        starting = [asyncio.create_task(site.start(f"{number}/{run}")) for run in range(RUNS)]
        await dying.died()
        site.members.remove(dying)
        if number % 2 == 0:
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
        next_one = await site.begin(victim)
        await _all_is_well(site, starting)
        await site.kill(next_one)


async def _all_is_well(site: Site, starting: list[asyncio.Task[str]]) -> None:
    """Runs that are being started end, with everything verified, the log is right, and the tables say what it says."""
    async with asyncio.timeout(TIMEOUT_S):
        streams = list(await asyncio.gather(*starting))
    await site.ended(streams)
    assert [site.verified[stream] for stream in streams] == [verified_in_all()] * len(streams)
    await check_site(site, images=False)
    await check_tables(site)
