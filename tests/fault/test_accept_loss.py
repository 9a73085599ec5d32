"""Commands that were removed undecided: an operator accepts it, one commit says so, and the partition goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from dagbok.agents.scheduler.losses import accept_loss
from dagbok.agents.scheduler.recover import NoSnapshots, Recovery
from dagbok.events.codes import Code
from dagbok.events.envelope import command_record
from dagbok.events.errors import LogError, LogLost, Refused
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS, Bounds, Record, Topic
from dagbok.events.run.events import CommandsLost, Event, RunPaused, RunStarted
from tests.fault.test_owner_halts import TIMEOUT_S, decided_log, envelope, halts
from tests.simulation.owners import Outlet, RunningOwner
from tests.support.audit import check_decided, effective_events

ACTOR = "operator:ann"


async def lossy_log() -> MemoryLog:
    """One command decided; two more removed, and one that is left."""
    log = await decided_log()
    await log.append(COMMANDS, 0, [command_record(envelope(id=f"id-{number}")) for number in range(3)])
    await log.delete_before(COMMANDS, 0, 3)
    return log


async def told(log: MemoryLog) -> Sequence[tuple[int, type[Event]]]:
    """Command offsets and types of all events that count, without those of tasks."""
    wanted = (RunStarted, RunPaused, CommandsLost)
    return [(offset, type(event)) for offset, event in await effective_events(log) if isinstance(event, wanted)]


async def test_the_partition_goes_on_behind_what_was_lost() -> None:
    log = await lossy_log()
    await halts(log, "removed undecided")
    assert await accept_loss(log, 0, actor=ACTOR) == CommandsLost(from_offset=1, to_offset=2)
    running = RunningOwner(log, Outlet(), 1)
    async with asyncio.timeout(TIMEOUT_S):
        await running.decided(3)
    await running.stop()
    assert await told(log) == [(0, RunStarted), (2, CommandsLost), (3, RunPaused)]
    await check_decided(log)


async def test_a_loss_at_the_very_end_is_accepted_before_anything_comes_behind_it() -> None:
    log = await lossy_log()
    await log.delete_before(COMMANDS, 0, 4)
    assert await accept_loss(log, 0, actor=ACTOR) == CommandsLost(from_offset=1, to_offset=3)
    state = await Recovery(log, 0, NoSnapshots(0), log_refuses=True).fold()
    assert state.position.last_command_offset == 3


async def test_nothing_is_accepted_twice_or_where_nothing_was_lost() -> None:
    log = await decided_log()
    with pytest.raises(Refused, match="no command of partition 0") as refused:
        await accept_loss(log, 0, actor=ACTOR)
    assert refused.value.code == Code.NOT_FOUND
    log = await lossy_log()
    await accept_loss(log, 0, actor=ACTOR)
    end = await log.bounds(EVENTS, 0)
    with pytest.raises(Refused, match="no command of partition 0"):
        await accept_loss(log, 0, actor=ACTOR)
    assert await log.bounds(EVENTS, 0) == end


async def test_what_is_decided_and_gone_cannot_be_accepted() -> None:
    log, other = await decided_log(), MemoryLog()
    await other.append(EVENTS, 0, [Record(r.key, r.value) for r in await log.read(EVENTS, 0, 0, 100)])
    with pytest.raises(LogLost, match="end at 0"):
        await accept_loss(other, 0, actor=ACTOR)


@pytest.mark.parametrize("refuses", [True, False])
async def test_who_is_slower_than_another_writer_changes_nothing(refuses: bool) -> None:
    """On Kafka the append lands behind the other's, and is void."""
    log = Race(await lossy_log(), refuses)
    with pytest.raises(LogError, match="somebody else writes") as lost:
        await accept_loss(log, 0, actor="operator:slow")
    assert lost.value.code == Code.LOG_CONFLICT
    assert await told(log) == [(0, RunStarted), (2, CommandsLost)]
    assert (await log.bounds(EVENTS, 0)).end == (2 if refuses else 3)


async def test_an_append_that_seems_to_fail_and_is_in_the_log_has_worked() -> None:
    """The log is asked, not the acknowledgement; and where it does not have it, the failure is told as it is."""
    log = Unconfirmed(await lossy_log(), writes=True)
    assert await accept_loss(log, 0, actor=ACTOR) == CommandsLost(from_offset=1, to_offset=2)
    other = Unconfirmed(await lossy_log(), writes=False)
    with pytest.raises(LogError, match="no answer") as failed:
        await accept_loss(other, 0, actor=ACTOR)
    assert failed.value.code == Code.LOG_UNREACHABLE


async def test_what_a_snapshot_knows_to_be_decided_is_not_accepted_as_lost() -> None:
    """`events` were cut back behind the backs of all: the commands were decided, and had effects."""
    stand = (await Recovery(await decided_log(), 0, NoSnapshots(0)).fold()).position
    whole = await lossy_log()
    with pytest.raises(LogLost, match="ends at 0, but was read up to 1"):
        await accept_loss(CutBack(whole), 0, actor=ACTOR, known=[stand])
    foreign = msgspec.structs.replace(stand, head_hash="0" * 64)
    with pytest.raises(LogLost, match="has another commit"):
        await accept_loss(whole, 0, actor=ACTOR, known=[foreign])
    assert (await whole.bounds(EVENTS, 0)).end == 1
    assert await accept_loss(whole, 0, actor=ACTOR, known=[stand]) == CommandsLost(from_offset=1, to_offset=2)


async def test_whoever_halts_at_a_loss_is_told_how_to_go_on_where_that_is_possible() -> None:
    log = await lossy_log()
    with pytest.raises(LogLost) as kafka:
        await Recovery(log, 0, NoSnapshots(0)).fold()
    assert "dagbok doctor --accept-loss 0" in kafka.value.advice
    with pytest.raises(LogLost) as folder:
        await Recovery(log, 0, NoSnapshots(0), log_refuses=True).fold()
    assert "accept" not in folder.value.advice


async def test_a_batch_of_an_owner_that_still_had_the_commands_is_void_behind_it() -> None:
    """It had read what was removed, slept, and appends now."""
    log = await decided_log()
    await log.append(COMMANDS, 0, [command_record(envelope(id=f"id-{number}")) for number in range(3)])
    late = Race(log, refuses=False)
    late.before = "loss"
    running = RunningOwner(late, Outlet(), 1)
    async with asyncio.timeout(TIMEOUT_S):
        await running.decided(3)
    await running.stop()
    assert (await told(log))[1] == (2, CommandsLost)
    await check_decided(log)


class Race(MemoryLog):
    """Somebody accepts the loss just before the first append of `events` here; what is behind that is appended all the
    same, unless the log refuses."""

    def __init__(self, log: MemoryLog, refuses: bool) -> None:
        super().__init__()
        self.__dict__.update(log.__dict__)
        self._other, self._refuses, self.before = log, refuses, "append"

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        if topic == EVENTS and self.before:
            if self.before == "loss":
                await self._other.delete_before(COMMANDS, 0, 3)
            self.before = ""
            await accept_loss(self._other, partition, actor=ACTOR)
        return await super().append(topic, partition, records, expect=expect if self._refuses else None)


class Unconfirmed(MemoryLog):
    """Who appends to `events` hears nothing; the records are there all the same, or are not."""

    def __init__(self, log: MemoryLog, *, writes: bool) -> None:
        super().__init__()
        self.__dict__.update(log.__dict__)
        self._writes = writes

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        if self._writes:
            await super().append(topic, partition, records, expect=expect)
        raise LogError("no answer", code=Code.LOG_UNREACHABLE)


class CutBack(MemoryLog):
    """What was in `events` is gone."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__()
        self.__dict__.update(log.__dict__)

    async def bounds(self, topic: Topic, partition: int) -> Bounds:
        return Bounds(0, 0) if topic == EVENTS else await super().bounds(topic, partition)
