"""Owners that stand still, come and go, run other code, or have a clock that is off: what they write counts only when
it was decided on the history that everybody has."""

from __future__ import annotations

import asyncio
import signal

import pytest

from dagbok.events.log.port import COMMANDS, Record
from dagbok.events.run import events as e
from tests.kafka_kills.members import Member
from tests.kafka_kills.site import TIMEOUT_S, Site
from tests.kafka_kills.truth import chain_of, check_site, raw_values
from tests.support.audit import effective_events

TEN_MINUTES_MS = 10 * 60 * 1000


async def held(member: Member) -> set[int]:
    """The partitions that it decides for."""
    return set(await member.ask(partitions=True))


async def test_an_owner_that_slept_through_its_succession_writes_nothing_that_counts(site: Site) -> None:
    first = await site.add("scheduler")
    await site.add("worker")
    await site.ended([await site.start("before")])
    first.send(signal.SIGSTOP)
    second = await site.add("scheduler")
    streams = [await site.start(f"while it sleeps {number}") for number in range(4)]
    await site.ended(streams)
    first.send(signal.SIGCONT)
    streams = [await site.start(f"awake {number}") for number in range(4)]
    await site.ended(streams)
    await first.ask(partitions=True)
    assert second.alive
    await check_site(site)


async def test_processes_come_and_go_under_load(site: Site) -> None:
    streams = [asyncio.create_task(site.start(f"load {number}")) for number in range(6)]
    kept = [await site.add("scheduler"), await site.add("worker")]
    more = [await site.add(role) for role in ("scheduler", "worker", "scheduler", "worker")]
    streams += [asyncio.create_task(site.start(f"more load {number}")) for number in range(6)]
    async with asyncio.timeout(TIMEOUT_S):
        while len(await held(kept[0])) == site.partitions:  # noqa: ASYNC110 – only that process knows
            await asyncio.sleep(0.1)
        found = await asyncio.gather(*streams)
    for member in more:
        site.members.remove(member)
        await member.leave()
    await site.ended(found)
    await site.ended([await site.start("alone again")])
    await check_site(site)


@pytest.mark.parametrize("version", ["more-fields", "other-fold", "decides-otherwise"])
async def test_two_versions_of_the_scheduler_share_a_cluster_in_a_rollout(site: Site, version: str) -> None:
    """What the newer one writes is read by the older one: fields that it does not know it passes over. A snapshot of
    another fold is nobody's but its own. Code that decides otherwise is harmless: who reads does not decide."""
    await site.add("worker")
    for round in range(2):
        for name in ("", version):
            member = await site.add("scheduler", MEMBER_VERSION=name)
            for other in site.of("scheduler")[:-1]:
                site.members.remove(other)
                await (other.kill() if round else other.leave())
            await site.ended([await site.start(f"{round} {name} {number}") for number in range(4)])
            assert await held(member) <= set(range(site.partitions))
    both = [await site.add("scheduler", MEMBER_VERSION=version), *site.of("scheduler")]
    await site.ended([await site.start(f"both {number}") for number in range(6)])
    assert all(member.alive for member in both)
    await check_site(site, images=False)
    if version == "more-fields":
        values = [value for number in range(4) for _, value in await raw_values(site.settings, "events", number)]
        assert any(b"added_later" in value for value in values)


async def test_an_owner_whose_clock_is_ten_minutes_behind_decides_nothing_and_says_why(site: Site) -> None:
    """A command from its future could be one of a log that jumped: it halts every partition with an alarm until its
    clock is right or another one has its place. Nothing is lost."""
    behind = await site.add("scheduler", MEMBER_CLOCK_MS=str(-TEN_MINUTES_MS))
    await site.add("worker")
    starting = [asyncio.create_task(site.start(f"early {number}")) for number in range(4)]
    async with asyncio.timeout(TIMEOUT_S):
        while "DAGBOK-CLOCK-AHEAD" not in (told := behind.log.read_text()):  # noqa: ASYNC110 – it is another process
            await asyncio.sleep(0.1)
    assert "partition.halted" in told
    assert [chain_of(await raw_values(site.settings, "events", number)).end for number in range(4)] == [0] * 4
    site.members.remove(behind)
    await behind.leave()
    await site.add("scheduler")
    async with asyncio.timeout(TIMEOUT_S):
        streams = list(await asyncio.gather(*starting))
    await site.ended(streams)
    await check_site(site)


async def test_an_owner_whose_clock_is_ten_minutes_ahead_decides_by_the_log_s_time(site: Site) -> None:
    """Its clock is asked only whether commands are from the future. Times of commits are those of the log."""
    await site.add("scheduler", MEMBER_CLOCK_MS=str(TEN_MINUTES_MS))
    await site.add("worker")
    streams = [await site.start(f"late {number}") for number in range(4)]
    await site.ended(streams)
    for number in range(site.partitions):
        commands = await site.process.log.read(COMMANDS, number, 0, 1_000)
        latest_ms = max((command.append_ms for command in commands), default=0)
        for _, event in await effective_events(site.process.log, number):
            if isinstance(event, e.AttemptStarted):
                assert event.lease_until_ms <= latest_ms + 60_000
    await check_site(site)


async def test_a_worker_whose_clock_is_ten_minutes_ahead_is_refused_and_others_do_its_work(site: Site) -> None:
    """What it sends says when it was sent first, which is ahead of the log: `clock_ahead`, without harm to anybody."""
    await site.add("scheduler")
    await site.add("worker", MEMBER_CLOCK_MS=str(TEN_MINUTES_MS))
    stream = await site.start("by a worker of the future")
    async with asyncio.timeout(TIMEOUT_S):
        while not await _refused(site, "clock_ahead"):  # noqa: ASYNC110 – it is another process
            await asyncio.sleep(0.1)
    site.members[-1].send(signal.SIGKILL)
    await site.members.pop().process.wait()
    await site.add("worker")
    await site.ended([stream])
    await check_site(site)


async def _refused(site: Site, code: str) -> list[e.Event]:
    partitions = [await effective_events(site.process.log, number) for number in range(site.partitions)]
    found = [event for events in partitions for _, event in events]
    return [event for event in found if isinstance(event, e.CommandRefused) and event.code == code]


async def test_a_foreign_commit_in_events_is_void_for_everybody(site: Site) -> None:
    """As one that an owner writes too late: `after` and `prev` are of another history."""
    await site.add("scheduler,worker")
    streams = [await site.start(f"before {number}") for number in range(4)]
    await site.ended(streams)
    for number in range(site.partitions):
        values = await raw_values(site.settings, "events", number)
        for _, value in values[:3]:
            await site.process.log.append("events", number, [Record("run:late", value)])
    await site.ended([await site.start(f"after {number}") for number in range(8)])
    voids = [chain_of(await raw_values(site.settings, "events", number)).void for number in range(site.partitions)]
    assert sum(voids) >= 3
    await check_site(site)
