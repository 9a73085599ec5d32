"""Two processes on one data folder: one owns it, the others say who, and a command reaches the log whoever decides."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dagbok import Code, Dagbok, Outcome, TaskContext, worker
from dagbok.agents.hosting.control import decide_once
from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.envelope import Command, Sender, run_command
from dagbok.events.errors import FolderBusy
from dagbok.events.ids import run_stream
from dagbok.events.log.clock import system_ms
from dagbok.events.run.commands import CancelRun, PauseRun, ResumeRun, RunCommand
from dagbok.events.run.events import AttemptLost
from tests.support.hosts import TIMEOUT_S, events_of, hosted, spec, until

OWNER = """
import asyncio, sys
from dagbok import Dagbok

async def main():
    async with Dagbok.embedded(sys.argv[1], projector="none"):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@worker("waits")
async def waits(task: TaskContext) -> Outcome:
    """Waits for its first attempt to be lost."""
    if task.epoch == 1:
        await asyncio.Event().wait()
    return Outcome.candidate(task.epoch)


@asynccontextmanager
async def owning(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that owns the folder, until its input ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            assert await process.stdout.readline() == b"ready\n"
            yield process
            process.stdin.close()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            await process.wait()


def command(run: str, data: RunCommand) -> Command:
    """A client's command to a run of `local/default`."""
    sender = Sender("local", "default", "user:ann")
    return run_command(sender, run_stream(run), data, id=f"{type(data).__name__}-{run}", now_ms=system_ms())


async def waiting_run(folder: Path) -> str:
    """A run in a folder without an owner; it waits for `waits`."""
    async with hosted(folder) as dagbok:
        return await dagbok.start(spec("waits"))


async def test_who_must_own_the_folder_is_told_who_does(tmp_path: Path) -> None:
    async with owning(tmp_path) as process:
        with pytest.raises(FolderBusy, match=f"process {process.pid} has owned"):
            async with Dagbok.embedded(tmp_path, own="must", projector="none"):
                pass
    async with hosted(tmp_path, waits):
        pass


async def test_a_second_host_in_the_same_process_is_refused_too_and_disturbs_nothing(tmp_path: Path) -> None:
    async with hosted(tmp_path, waits) as dagbok:
        with pytest.raises(FolderBusy):
            async with Dagbok.embedded(tmp_path, own="must", projector="none"):
                pass
        run = await dagbok.start(spec("waits"))
        assert (await dagbok.cancel(run)).accepted


async def test_a_command_is_decided_by_the_owner_where_there_is_one(tmp_path: Path) -> None:
    run = await waiting_run(tmp_path)
    async with owning(tmp_path):
        answer = await decide_once(DataFolder(tmp_path), command(run, CancelRun("enough")))
        assert (answer.accepted, "RunCancelled" in answer.events) == (True, True)
        again = await decide_once(DataFolder(tmp_path), command(run, ResumeRun()))
        assert (again.accepted, again.code) == (False, Code.RUN_CLOSED)


async def test_a_command_is_decided_without_an_owner_and_the_folder_is_free_again(tmp_path: Path) -> None:
    run = await waiting_run(tmp_path)
    answer = await decide_once(DataFolder(tmp_path), command(run, PauseRun("lunch")))
    assert answer.events == ("RunPaused",)
    async with hosted(tmp_path, waits) as dagbok:
        assert dagbok.status(run) == "paused"


async def test_commands_of_several_processes_without_an_owner_are_each_decided_once(tmp_path: Path) -> None:
    runs = [await waiting_run(tmp_path) for _ in range(6)]
    answers = await asyncio.gather(*[decide_once(DataFolder(tmp_path), command(run, CancelRun())) for run in runs])
    assert all(answer.accepted for answer in answers)
    async with hosted(tmp_path) as dagbok:
        assert [dagbok.status(run) for run in runs] == ["cancelled"] * 6


async def test_a_stopped_owner_is_named_and_nothing_is_lost_when_it_goes_on(tmp_path: Path) -> None:
    run = await waiting_run(tmp_path)
    async with owning(tmp_path) as process:
        while not await _pauses_in_vain(tmp_path, run, process):
            process.send_signal(signal.SIGCONT)
        with pytest.raises(FolderBusy):
            async with Dagbok.embedded(tmp_path, own="must", projector="none"):
                pass
        process.send_signal(signal.SIGCONT)
        # The pause that nobody waited for is decided before what comes now.
        answer = await decide_once(DataFolder(tmp_path), command(run, ResumeRun()))
        assert answer.events[:1] == ("RunResumed",)


async def _pauses_in_vain(folder: Path, run: str, owner: asyncio.subprocess.Process) -> bool:
    """Whether the command is in the log: not where the owner was stopped inside a transaction."""
    owner.send_signal(signal.SIGSTOP)
    with pytest.raises(FolderBusy, match=f"owner not responding: process {owner.pid}") as busy:
        await decide_once(DataFolder(folder), command(run, PauseRun()), patience_s=0.3)
    return "the command is in the log" in str(busy.value)


async def test_what_a_killed_process_held_runs_again_without_waiting_for_its_lease(tmp_path: Path) -> None:
    killed = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, str(tmp_path)), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert killed.stdout is not None
    run = (await asyncio.wait_for(killed.stdout.readline(), TIMEOUT_S)).decode().strip()
    killed.kill()
    await killed.wait()
    async with hosted(tmp_path, waits) as dagbok:
        await until(dagbok, lambda: dagbok.status(run) == "succeeded")
        assert (await dagbok.result(run)).json() == 2
        assert len(await events_of(dagbok, AttemptLost)) == 1


HOLDER = """
import asyncio, sys
from dagbok import Dagbok, TaskSpec, Outcome, worker, verifier

@worker("waits")
async def waits(task):
    print(task.run_id, flush=True)
    await asyncio.Event().wait()

@verifier("yes", version="1")
async def yes(candidate, task):
    return True

async def main():
    async with Dagbok.embedded(sys.argv[1], waits, yes, projector="none") as dagbok:
        await dagbok.run(TaskSpec(goal="wait", worker="waits", verifier="yes"))

asyncio.run(main())
"""
