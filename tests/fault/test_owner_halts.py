"""Logs that an owner must not go on from: it says why, and decides nothing more."""

from __future__ import annotations

import asyncio

import pytest

from dagbok.agents.scheduler.recover import NoSnapshots, Recovery
from dagbok.events.codes import Code
from dagbok.events.envelope import Command, command_record, run_command
from dagbok.events.errors import LogCorrupt, LogLost
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS, Record
from dagbok.events.run.commands import PauseRun, RunCommand
from dagbok.projections.partition import PartitionState
from dagbok.testing import start, task
from tests.simulation.owners import Outlet, RunningOwner
from tests.support.logbuilder import SENDER, START_MS

TIMEOUT_S = 20.0


def envelope(command: RunCommand | None = None, *, id: str = "pause", at_ms: int = START_MS) -> Command:
    """A command to the run `run-1`; a pause unless told otherwise."""
    return run_command(SENDER, "run:run-1", command or PauseRun(), id=id, now_ms=at_ms)


async def decided_log() -> MemoryLog:
    """A log with one command, decided."""
    log = MemoryLog(clock=lambda: START_MS)
    running = RunningOwner(log, Outlet(), 1)
    await log.append(COMMANDS, 0, [command_record(envelope(start(task("a")), id="start"))])
    async with asyncio.timeout(TIMEOUT_S):
        await running.decided(0)
    await running.stop()
    return log


async def test_the_owner_stops_before_a_command_that_is_far_ahead_of_its_clock_and_decides_all_before_it() -> None:
    now_ms = START_MS * 2
    log = MemoryLog(clock=lambda: now_ms)
    await log.append(COMMANDS, 0, [command_record(envelope(start(task("a")), at_ms=now_ms))])
    now_ms += 6 * 60 * 1000
    await log.append(COMMANDS, 0, [command_record(envelope(at_ms=now_ms))])
    running = RunningOwner(log, Outlet(), 1)
    with pytest.raises(LogCorrupt, match="in the future") as alarm:
        async with asyncio.timeout(TIMEOUT_S):
            await running.decided(1)
    assert alarm.value.code == Code.CLOCK_AHEAD
    assert (await Recovery(log, 0, NoSnapshots(0)).fold()).position.last_command_offset == 0
    assert running.owner.state == PartitionState(0), "nobody can go on with the state of an owner that has stopped"


async def test_commands_that_were_removed_undecided_halt_the_owner() -> None:
    log = await decided_log()
    await log.append(COMMANDS, 0, [command_record(envelope(id=f"id-{number}")) for number in range(3)])
    await log.delete_before(COMMANDS, 0, 3)
    await halts(log, "removed undecided")


async def test_commands_that_were_removed_under_a_running_owner_halt_it() -> None:
    running = RunningOwner(Gap(await decided_log()), Outlet(), 1)
    with pytest.raises(LogLost, match="removed undecided"):
        async with asyncio.timeout(TIMEOUT_S):
            await running.decided(5)


async def test_commands_that_end_below_what_is_decided_halt_the_owner() -> None:
    log = await decided_log()
    other = MemoryLog(clock=lambda: START_MS)
    await other.append(EVENTS, 0, [Record(r.key, r.value) for r in await log.read(EVENTS, 0, 0, 100)])
    await halts(other, "end at 0")


async def test_another_command_than_the_one_that_was_decided_halts_the_owner() -> None:
    log = await decided_log()
    other = MemoryLog(clock=lambda: START_MS)
    await other.append(EVENTS, 0, [Record(r.key, r.value) for r in await log.read(EVENTS, 0, 0, 100)])
    await other.append(COMMANDS, 0, [command_record(envelope(id="another"))])
    await halts(other, "not the one that was decided")


async def test_decided_commands_may_be_removed() -> None:
    log = await decided_log()
    await log.delete_before(COMMANDS, 0, 1)
    state = await Recovery(log, 0, NoSnapshots(0)).fold()
    assert state.position.last_command_offset == 0


class Gap(MemoryLog):
    """Shows the log of another, with a hole that was torn after the owner took it over."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__()
        self.__dict__.update(log.__dict__)

    async def wait(self, topic: object, partition: int, offset: int, timeout_s: float | None = None) -> bool:
        await self.append(COMMANDS, 0, [command_record(envelope(id=f"id-{number}")) for number in range(5)])
        await self.delete_before(COMMANDS, 0, offset + 2)
        return True


async def halts(log: MemoryLog, why: str) -> None:
    """An owner that takes the partition over refuses to."""
    running = RunningOwner(log, Outlet(), 1)
    with pytest.raises(LogLost, match=why):
        async with asyncio.timeout(TIMEOUT_S):
            await running.decided(100)
