"""What schedules of the simulation have found, each in its shortest form."""

from __future__ import annotations

import asyncio

import pytest

from dagbok import Candidate, Outcome, RunResult, TaskContext, TaskSpec, verifier, worker
from dagbok.agents.scheduler import owner
from dagbok.agents.scheduler.handle import handle
from dagbok.agents.scheduler.timers import Timers
from dagbok.events.envelope import command_record, run_command
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS, Record, StoredRecord
from dagbok.events.run import commands as c
from dagbok.events.run.events import CommandRefused, CommandRepeated
from dagbok.testing import NO_FAULTS, act, failure, simulate, start, task
from dagbok.testing.simulation import die
from tests.simulation.owners import Outlet, RunningOwner
from tests.support.logbuilder import SENDER, START_MS, LogBuilder

NAME = "run"


async def test_an_owner_that_stood_still_while_another_decided_and_tidied_up_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, "DOUBT_PAUSE_S", 0.0)
    log = MemoryLog(clock=lambda: START_MS)
    stale = RunningOwner(log, Outlet(), 1)
    await stale.decided(-1)
    # Nothing of this lets the owner run: it has stood still.
    other = LogBuilder()
    other.send(NAME, start(task("t")))
    other.send(NAME, c.PauseRun())
    for command in other.commands:
        await log.append(COMMANDS, 0, [Record(command.key, command.value)])
    await other.append_to(log)
    await log.delete_before(COMMANDS, 0, 2)
    resume = run_command(SENDER, f"run:{NAME}", c.ResumeRun(), id="resume", now_ms=START_MS)
    await log.append(COMMANDS, 0, [command_record(resume)])
    async with asyncio.timeout(10):
        await stale.decided(2)
    assert stale.owner.state.runs[f"run:{NAME}"].status == "running"
    assert (await log.bounds(EVENTS, 0)).end == 3
    await stale.stop()


def test_a_command_that_took_the_id_of_another_one_does_not_take_its_answer() -> None:
    log = LogBuilder()
    log.send(NAME, start(task("t")), id="start")
    log.send(NAME, c.PauseRun("lunch"), id="mine")
    (conflict,) = log.send(NAME, c.CancelRun(), id="mine")
    assert isinstance(conflict, CommandRefused)
    assert log.send(NAME, c.PauseRun("lunch"), id="mine") == [CommandRepeated(1)]


def test_a_run_that_is_reopened_has_the_timers_that_came_up_while_it_was_closed() -> None:
    log, timers = LogBuilder(), Timers()

    def send(command: c.RunCommand) -> None:
        envelope = run_command(SENDER, f"run:{NAME}", command, id=f"c{len(log.commands)}", now_ms=log.now_ms)
        record = StoredRecord(len(log.commands), log.now_ms, "", command_record(envelope).value)
        log.commands.append(record)
        timers.confirmed(log.state, handle(log.state, record, 1))

    send(start(task("slow"), task("bad"), failure_policy="fail_fast"))
    send(act.fail_attempt(log.run(NAME), "slow", failure()))
    send(act.fail_attempt(log.run(NAME), "bad", failure(terminal=True)))
    assert log.run(NAME).status == "failed"
    due_ms = log.run(NAME).tasks["slow"].due_ms
    assert timers.due(log.state, due_ms) == []
    send(c.RetryTask("bad"))
    assert [timer.task for _, timer in timers.due(log.state, due_ms)] == ["slow"]


def test_a_pure_worker_that_its_task_kills_at_once_ends_as_poison() -> None:
    @worker("deadly", pure=True)
    async def deadly(context: TaskContext) -> Outcome:
        await die()

    @verifier("yes", version="1")
    async def yes(judged: Candidate, context: TaskContext) -> bool:
        return True

    def poisoned(result: RunResult) -> None:
        assert (result.status, result.failed) == ("failed", {"t": "poison"})

    simulate(
        TaskSpec(id="t", goal="die", worker="deadly", verifier="yes"),
        deadly,
        yes,
        seeds=range(3),
        faults=NO_FAULTS,
        check=poisoned,
    )
