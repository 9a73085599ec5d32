"""The data folder goes away, or the program goes elsewhere, while it is in use: nothing is said to be done that is not
in the log at its place."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dagbok import Code, Dagbok, Outcome, TaskContext, worker
from dagbok.events.errors import DagbokError, LogLost
from dagbok.events.log.port import COMMANDS, Record
from dagbok.events.log.sqlite import SqliteLog
from tests.support.hosts import TIMEOUT_S, spec, yes

RECORD = Record("run:1", b"value")


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def move(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def exchange(folder: Path) -> None:
    (folder / "log.db").rename(folder / "log.old")
    shutil.copy(folder / "log.old", folder / "log.db")


GOINGS = pytest.mark.parametrize("go", [remove, move, exchange])


@GOINGS
async def test_a_run_does_not_succeed_in_a_log_that_is_gone(tmp_path: Path, go: Callable[[Path], None]) -> None:
    @worker("take-away")
    async def take_away(task: TaskContext) -> Outcome:
        go(tmp_path / "data")
        return Outcome.candidate("done")

    with pytest.raises(LogLost) as lost:
        async with (
            asyncio.timeout(TIMEOUT_S),
            Dagbok.embedded(tmp_path / "data", take_away, yes, projector="none") as dagbok,
        ):
            await dagbok.run(spec("take-away"))
    assert lost.value.code == Code.LOG_LOST
    assert "while it was in use" in str(lost.value)


async def test_who_follows_is_told_as_well_and_does_not_wait_for_ever(tmp_path: Path) -> None:
    begun = asyncio.Event()

    @worker("wait")
    async def wait(task: TaskContext) -> Outcome:
        begun.set()
        await asyncio.Event().wait()
        return Outcome.candidate(None)

    async with asyncio.timeout(TIMEOUT_S):
        async with (
            Dagbok.embedded(tmp_path / "data", wait, yes, projector="none") as owner,
            Dagbok.embedded(tmp_path / "data", yes, serve=False, own="never") as follower,
        ):
            run = await owner.start(spec("wait"))
            waiting = [asyncio.create_task(dagbok.wait(run)) for dagbok in (owner, follower)]
            await begun.wait()
            remove(tmp_path / "data")
            ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in ended] == [LogLost, LogLost]


@GOINGS
async def test_an_append_is_not_confirmed_in_a_file_that_is_gone(tmp_path: Path, go: Callable[[Path], None]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    log = SqliteLog.open(folder / "log.db")
    try:
        assert await log.append(COMMANDS, 0, [RECORD]) == 0
        go(folder)
        with pytest.raises(LogLost):
            await log.append(COMMANDS, 0, [RECORD])
    finally:
        await log.close()


@GOINGS
async def test_who_waits_for_a_log_is_told_that_it_is_gone(tmp_path: Path, go: Callable[[Path], None]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    log = SqliteLog.open(folder / "log.db")
    try:
        async with asyncio.timeout(TIMEOUT_S):
            waiting = asyncio.create_task(log.wait(COMMANDS, 0, 0))
            await asyncio.sleep(0)
            go(folder)
            with pytest.raises(LogLost):
                await waiting
    finally:
        await log.close()


async def test_a_folder_given_by_a_relative_path_stays_where_it_is_when_a_worker_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    @worker("leave")
    async def leave(task: TaskContext) -> Outcome:
        os.chdir(tmp_path / "elsewhere")
        return Outcome.candidate(b"x" * 100_000)  # too large for the log: a file of its own

    @worker("read")
    async def read(task: TaskContext) -> Outcome:
        return Outcome.candidate(len(task.dependencies["left"].data()))

    async with asyncio.timeout(TIMEOUT_S), Dagbok.embedded("data", leave, read, yes, projector="none") as dagbok:
        run = await dagbok.start([spec("leave", id="left"), spec("read", id="reader", depends_on=["left"])])
        result = await dagbok.wait(run)
        assert result.json() == 100_000
        assert [found.run for found in (await dagbok.list_runs()).runs] == [run]
        assert dagbok.host.owner_seen().pid == os.getpid()
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_folder_that_is_gone_is_told_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with Dagbok.embedded(folder, yes, projector="none") as dagbok:
        remove(folder)
        with pytest.raises(DagbokError) as error:
            await dagbok.run(spec("nobody"))
    assert "\n" not in str(error.value)
