"""Two tenants on one cluster, each with the ids of the other."""

from __future__ import annotations

import asyncio
import random
import re
import secrets

import pytest

from dagbok.events.envelope import Answer
from dagbok.events.errors import ArtifactNotFound
from dagbok.events.log.port import EVENTS
from dagbok.events.rule import GENESIS
from dagbok.events.run.commands import RUN_COMMANDS, StartRun
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.queries import Queries
from dagbok.projections.reading import read_effective
from tests.kafka_kills.intruding import commands, seen_of
from tests.kafka_kills.site import EVERYBODY, Site
from tests.kafka_kills.tables import check_tables
from tests.kafka_kills.truth import check_site
from tests.support.scale import scale

TENANTS = ("acme", "evil")
TASKS = ("root", "last", "child-1", "no-such")
SEEDS = range(scale(1, 5))


def test_every_command_that_there_is_is_tried() -> None:
    assert commands("root", 1).keys() == RUN_COMMANDS.keys()


@pytest.mark.parametrize("seed", SEEDS)
async def test_two_tenants_cannot_reach_each_other_s_runs_and_learn_nothing_of_them(seed: int, site: Site) -> None:
    chance = random.Random(seed)
    await site.add(f"{EVERYBODY},projector")
    streams = {name: [await site.start(f"{name} {n}", tenant=name) for n in range(3)] for name in TENANTS}
    tried = chance.sample([*RUN_COMMANDS] * 3, 3 * len(RUN_COMMANDS))
    asked = 0
    for kind in tried:
        victim, attacker = chance.sample(TENANTS, 2)
        stream, task = chance.choice(streams[victim]), chance.choice(TASKS)
        command = commands(task, chance.randint(1, 3))[kind]
        answer = await site.ask(stream, command, tenant=attacker)
        assert (answer.accepted, answer.code) == (False, "not_found"), command
        told = (answer.reason or "").replace(stream, "").replace(f"{attacker}/docs", "")
        assert not {victim, task} & set(re.findall(r"[\w-]+", told)), answer
        asked += 1
        if not isinstance(command, StartRun):  # that one would begin a run, under an id that nobody has
            nothing = await site.ask(f"run:{secrets.token_hex(16)}", command, tenant=attacker)
            assert _told(nothing) == _told(answer), command
            asked += 1
    await site.ended(streams["acme"] + streams["evil"])
    assert await _refusals_of_no_stream(site) == asked
    await check_site(site)
    await check_tables(site)
    await asyncio.to_thread(_check_seen, site, streams)


def _told(answer: Answer) -> tuple[object, ...]:
    """All but what was asked for."""
    return answer.accepted, answer.code, answer.advice, answer.retry


async def _refusals_of_no_stream(site: Site) -> int:
    """How many commits say `not_found`; a refusal that stood in a stream would tell its owner of the attacker."""
    refusals = 0
    for partition in range(site.partitions):
        position = GENESIS
        while True:
            position, commits = await read_effective(site.process.log, partition, position, 500)
            if not commits:
                break
            for commit in commits:
                if b"not_found" in bytes(commit.stored_body):
                    refusals += 1
                    assert commit.seal.stream is None, f"{EVENTS}[{partition}] {commit.offset} is in a stream"
    return refusals


def _check_seen(site: Site, streams: dict[str, list[str]]) -> None:
    """The tables and the artifacts tell each tenant of his own runs, and nothing of the other's."""
    tables = site.place.open()
    try:
        queries = Queries(tables)
        for victim, attacker in (TENANTS, TENANTS[::-1]):
            secret = site.process.store.put(Scope(victim, "docs"), f"of {victim} alone".encode())
            with pytest.raises(ArtifactNotFound):
                site.process.store.get(Scope(attacker, "docs"), secret.sha256, secret.size_bytes)
            for stream in streams[victim]:
                run = stream.removeprefix("run:")
                own, others = (seen_of(queries, who, run, "root") for who in (victim, attacker))
                assert [question for question, rows in others.items() if rows] == []
                assert all(own[question] for question in ("get_run", "list_tasks", "get_task", "attempts", "journal"))
    finally:
        tables.close()
