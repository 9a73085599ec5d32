"""What `dagbok doctor` says of a log, by what stands in it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from dagbok.agents.doctor import standstill
from dagbok.agents.doctor.keeper import ReadSlots
from dagbok.agents.doctor.look import LATE_MS, KeyWait, Late, Look, Whose, look
from dagbok.agents.queue.port import lane_of
from dagbok.agents.scheduler.inbox import MAX_CLOCK_AHEAD_MS
from dagbok.agents.scheduler.recover import NoSnapshots
from dagbok.events.codes import Code
from dagbok.events.envelope import command_record
from dagbok.events.errors import LogError
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, Record, StoredRecord, Topic
from dagbok.events.run import commands as c
from dagbok.testing import CLAIM, OTHER_CLAIM, Limits, start, task
from tests.fault.test_owner_halts import decided_log, envelope
from tests.support.logbuilder import LogBuilder

LANE = lane_of("work", "default")


def named(role: str, pool: str) -> str:
    return f"{role} {pool}"


async def looked(log: LogBuilder, now_ms: int) -> Look:
    """At a log whose owner has removed what it has decided."""
    stored = await log.log()
    await stored.append(COMMANDS, 0, [Record("", b"") for _ in log.commands])
    await stored.delete_before(COMMANDS, 0, len(log.commands))
    return await look(stored, 0, NoSnapshots(0), now_ms=now_ms, log_refuses=True)


async def test_a_deadline_is_late_when_its_timer_has_had_time_enough() -> None:
    log = LogBuilder()
    log.send("r", start(task("a"), task("b")))
    log.send("r", c.StartAttempt("a", 1, CLAIM, "process/1"))
    lease_ms = log.now_ms + 60_000
    log.now_ms += 30_000
    log.send("r", c.StartAttempt("b", 1, OTHER_CLAIM, "process/2"))
    assert (await looked(log, lease_ms + LATE_MS - 1)).late == ()
    (late,) = (await looked(log, lease_ms + LATE_MS)).late
    assert late == Late(Whose("acme", "docs", "r"), 1, "lease", "a", lease_ms)
    (both,) = (await looked(log, lease_ms + 30_000 + LATE_MS)).late
    assert (both.count, both.task) == (2, "a"), "the oldest is named"


async def test_the_wall_time_of_a_run_is_a_deadline_too() -> None:
    log = LogBuilder()
    log.send("r", start(task("a"), limits=Limits(max_wall_ms=1_000)))
    (late,) = (await looked(log, log.now_ms + 1_000 + LATE_MS)).late
    assert (late.kind, late.task) == ("wall", "")
    (told,) = standstill.deadlines([Look(0, late=(late,))], log.now_ms + 31_000, "look")
    assert "the wall time of the run ended 30 s ago; nothing came of it" in told.told


async def test_keys_count_what_is_open_and_what_is_held_under_a_lease_that_holds() -> None:
    log = LogBuilder()
    log.send("r", start(task("a"), task("b"), task("c")))
    log.send("r", c.RejectAttempt("a", 1, "p1"))
    log.send("r", c.RejectAttempt("a", 1, "p2"))
    log.send("r", c.StartAttempt("b", 1, CLAIM, "process/1"))
    seen = await looked(log, log.now_ms + 5_000)
    ((place, wait),) = seen.keys.items()
    assert place[0] == LANE
    assert (wait.open, wait.rejections, wait.processes, wait.held) == (2, 2, frozenset(("p1", "p2")), 1)
    (warned,) = standstill.keys([seen], log.now_ms + 5_000, named)
    assert (warned.state, warned.numbers["oldest_s"]) == ("warning", 5), "somebody has the key"
    (wrong,) = standstill.keys([await looked(log, log.now_ms + 120_000)], log.now_ms, named)
    assert wrong.state == "failed", "the lease of who had it is over"


async def test_pools_are_those_of_tasks_that_are_not_done_in_runs_that_are_open() -> None:
    log = LogBuilder()
    log.send("r", start(task("a", pool="gpu"), task("b", depends_on=("a",), pool="cpu"), task("c", pool="gpu")))
    log.send("r", c.CancelTask("c"))
    log.send("ended", start(task("a", pool="old")))
    log.send("ended", c.CancelRun())
    assert (await looked(log, log.now_ms)).pools == {"gpu": 1, "cpu": 1}, "also of what only waits for others"


async def test_what_a_paused_run_has_open_is_nobodys_affair() -> None:
    log = LogBuilder()
    log.send("r", start(task("a"), task("b")))
    log.send("r", c.StartAttempt("b", 1, CLAIM, "process/1"))
    log.send("r", c.PauseRun("lunch"))
    seen = await looked(log, log.now_ms)
    assert (seen.paused, seen.keys, seen.going) == ((), {}, 0), "somebody works at it still"
    log.send("r", c.ReleaseAttempt("b", 1, CLAIM))
    (paused,) = (await looked(log, log.now_ms)).paused
    assert paused.by is not None
    assert paused.by.reason == "lunch"


async def test_a_partition_halts_for_what_a_scheduler_would_halt_at() -> None:
    log = await decided_log()
    await log.append(COMMANDS, 0, [command_record(envelope(id=f"id-{number}")) for number in range(3)])
    at_ms = (await log.read(COMMANDS, 0, 1, 1))[0].append_ms

    async def halts(now_ms: int) -> Code | None:
        seen = await look(log, 0, NoSnapshots(0), now_ms=now_ms, log_refuses=True)
        return None if seen.halts is None else seen.halts.code

    assert await halts(at_ms - MAX_CLOCK_AHEAD_MS) is None
    assert await halts(at_ms - MAX_CLOCK_AHEAD_MS - 1) == Code.CLOCK_AHEAD
    await log.delete_before(COMMANDS, 0, 3)
    assert await halts(at_ms) == Code.LOG_LOST


async def test_a_log_that_cannot_be_reached_is_no_halt() -> None:
    with pytest.raises(LogError):
        await look(Unreachable(), 0, NoSnapshots(0), now_ms=0, log_refuses=True)


def test_partitions_count_together_and_a_long_list_is_cut() -> None:
    one = KeyWait(open=1, oldest_ms=7, rejections=1, processes=frozenset("p"))
    two = KeyWait(open=2, oldest_ms=5, rejections=3, processes=frozenset("q"), held=1)
    waits = standstill.keys_of([Look(0, keys={(LANE, "k"): one}), Look(1, keys={(LANE, "k"): two})])
    assert waits == {(LANE, "k"): KeyWait(3, 5, 4, frozenset("pq"), 1)}
    assert standstill.waiting_in(waits, LANE, 1_005)[:2] == (3, 1.0)
    late = Late(Whose("t", "p", "r"), 1, "lease", "a", 0)
    many = tuple(msgspec.structs.replace(late, deadline_ms=number) for number in range(12))
    found = standstill.deadlines([Look(0, late=many)], 1_000, "look")
    assert len(found) == 11
    assert (found[-1].told, found[-1].state) == ("and 2 more runs", "failed")


def test_a_partition_that_halts_is_not_said_to_be_well() -> None:
    looks = [Look(0), Look(1, LogError("lost"))]
    for (found,) in (standstill.deadlines(looks, 0, ""), standstill.paused(looks, 0), standstill.keys(looks, 0, named)):
        assert found.told.endswith("of 1 partition that halts it is not known")
    assert [each.what for each in standstill.halted(looks, 2)] == ["partition 1"]


def test_a_damaged_snapshot_is_not_taken_away_by_who_looks() -> None:
    slots = ReadSlots(Slots())
    slots.clear(0)
    assert slots.read() == [b"damaged"]
    with pytest.raises(AssertionError):
        slots.write(0, b"")


class Slots:
    def read(self) -> list[bytes]:
        return [b"damaged"]

    def write(self, slot: int, data: bytes) -> None:
        raise NotImplementedError

    def clear(self, slot: int) -> None:
        raise NotImplementedError


class Unreachable(MemoryLog):
    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        raise LogError("no broker answers", code=Code.LOG_UNREACHABLE)
