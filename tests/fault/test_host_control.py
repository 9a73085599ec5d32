"""A command that is sent from outside: its answer says what became of it, also the second time, and the folder is given
free only when nothing is written any more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dagbok import Code
from dagbok.agents.hosting import control
from dagbok.agents.hosting.control import decide_once
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.locks import FileLock
from dagbok.agents.scheduler.recover import Recovery
from dagbok.events.envelope import Command, Sender, run_command
from dagbok.events.ids import run_stream
from dagbok.events.log.clock import system_ms
from dagbok.events.run.commands import PauseRun, RunCommand
from tests.support.hosts import hosted, spec

SENDER = Sender("local", "default", "user:ann")


def command(run: str, data: RunCommand) -> Command:
    """A client's command with its own id."""
    return run_command(SENDER, run_stream(run), data, id="the-one", now_ms=system_ms())


async def waiting_run(folder: Path) -> str:
    """A run in a folder without an owner."""
    async with hosted(folder) as dagbok:
        return await dagbok.start(spec("waits"))


async def test_a_repeat_gets_the_first_answer(tmp_path: Path) -> None:
    pause = command(await waiting_run(tmp_path), PauseRun("lunch"))
    first = await decide_once(DataFolder(tmp_path), pause)
    assert (first.accepted, first.events) == (True, ("RunPaused",))
    assert await decide_once(DataFolder(tmp_path), pause) == first


async def test_a_repeat_of_what_was_refused_is_refused(tmp_path: Path) -> None:
    await waiting_run(tmp_path)
    pause = command("no-such-run", PauseRun("lunch"))
    first = await decide_once(DataFolder(tmp_path), pause)
    assert (first.accepted, first.code) == (False, Code.NOT_FOUND)
    assert await decide_once(DataFolder(tmp_path), pause) == first


async def test_the_lock_is_held_until_the_snapshot_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = DataFolder(tmp_path)
    was_free = list[bool]()

    class Writing(Recovery):
        async def settled(self) -> None:
            await asyncio.sleep(0)
            other = FileLock(folder.scheduler_lock, "other")
            was_free.append(other.try_acquire())
            await super().settled()

    monkeypatch.setattr(control, "Recovery", Writing)
    await decide_once(folder, command(await waiting_run(tmp_path), PauseRun("lunch")))
    assert was_free == [False]
    assert FileLock(folder.scheduler_lock, "other").try_acquire()
