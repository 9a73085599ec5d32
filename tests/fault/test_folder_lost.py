"""A data folder whose log is gone or was exchanged: said before anything is decided, and left as it is."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dagbok import Code, Dagbok, Outcome, TaskContext, worker
from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.errors import LogLost
from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.projector import Projector
from dagbok.projections.store import Tables
from tests.support.hosts import hosted, spec, yes


@worker("echo", pure=True)
async def echo(task: TaskContext) -> Outcome:
    """What it was given."""
    return Outcome.candidate(task.inputs)


async def work(folder: Path, times: int = 1, *, snapshot_bytes: int = 1) -> None:
    """Some runs, with snapshots on the way."""
    async with Dagbok.embedded(folder, echo, yes, projector="none", snapshot_bytes=snapshot_bytes) as dagbok:
        for _ in range(times):
            await dagbok.run([spec("echo", inputs="x" * 100) for _ in range(3)])


async def tabulate(folder: Path) -> None:
    """Bring the tables up to date."""
    log = SqliteLog.open(folder / "log.db")
    tables = Tables.open(folder / "tables.db")
    try:
        await Projector(log, tables).catch_up()
    finally:
        tables.close()
        await log.close()


def lost(folder: Path) -> LogLost:
    """Why the folder cannot be used; nothing in it has changed."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(LogLost) as refused:
        DataFolder(folder).prepare()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert refused.value.code == Code.LOG_LOST
    assert "\n" not in str(refused.value)
    return refused.value


def remove_log(folder: Path) -> None:
    for path in folder.glob("log.db*"):
        path.unlink()


def empty_log(folder: Path) -> None:
    (folder / "log.db").write_bytes(b"")


def cut_log(folder: Path) -> None:
    (folder / "log.db").write_bytes((folder / "log.db").read_bytes()[:100])


@pytest.mark.parametrize("how", [remove_log, empty_log, cut_log])
@pytest.mark.parametrize("left", ["tables.db", "snapshots"])
async def test_a_log_that_is_gone_is_not_begun_anew(how: Callable[[Path], None], left: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    if left == "tables.db":
        await work(folder, snapshot_bytes=10**9)
        await tabulate(folder)
    else:
        await work(folder, 3)
    how(folder)
    error = lost(folder)
    assert left in error.message
    assert "backup" in error.advice
    assert "anew" in error.advice


async def test_artifacts_alone_say_that_there_was_a_log(tmp_path: Path) -> None:
    @worker("large")
    async def large(task: TaskContext) -> Outcome:
        return Outcome.candidate(bytes(100_000))

    async with hosted(tmp_path, large) as dagbok:
        await dagbok.run(spec("large"))
    remove_log(tmp_path)
    assert "artifacts" in lost(tmp_path).message


async def test_a_write_ahead_log_alone_says_that_there_was_a_log(tmp_path: Path) -> None:
    DataFolder(tmp_path).prepare()
    (tmp_path / "log.db-wal").write_bytes(b"what was not yet in the log")
    assert "log.db-wal" in lost(tmp_path).message


async def test_a_queue_alone_says_that_there_was_a_log(tmp_path: Path) -> None:
    DataFolder(tmp_path).prepare()
    (tmp_path / "queue.db").write_bytes(b"what was under way")
    assert "queue.db" in lost(tmp_path).message


async def test_what_the_advice_says_begins_anew(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await work(folder)
    await tabulate(folder)
    remove_log(folder)
    lost(folder)
    folder.rename(tmp_path / "away")
    await work(folder)


@pytest.mark.parametrize("built", ["tables.db", "snapshots"])
async def test_an_older_copy_of_the_log_is_found_out(built: str, tmp_path: Path) -> None:
    folder, copy = tmp_path / "data", tmp_path / "copy"
    await work(folder, snapshot_bytes=10**9)
    shutil.copy(folder / "log.db", copy)
    await grow(folder, built)
    shutil.copy(copy, folder / "log.db")
    error = lost(folder)
    assert built in error.message
    assert "log.db ends at" in error.message


@pytest.mark.parametrize("built", ["tables.db", "snapshots"])
async def test_the_log_of_another_folder_is_found_out_however_long_it_is(built: str, tmp_path: Path) -> None:
    folder, other = tmp_path / "data", tmp_path / "other"
    await work(other, 8)
    await grow(folder, built)
    shutil.copy(other / "log.db", folder / "log.db")
    assert f"is not the log that {built} was built from" in lost(folder).message
    # On purpose:
    (folder / "tables.db").unlink(missing_ok=True)
    shutil.rmtree(folder / "snapshots")
    await work(folder)


async def grow(folder: Path, built: str) -> None:
    """More runs, and tables or snapshots of all of them."""
    if built == "snapshots":
        await work(folder, 4)
    else:
        await work(folder, 4, snapshot_bytes=10**9)
        await tabulate(folder)


async def test_a_folder_in_good_order_is_used_at_any_time(tmp_path: Path) -> None:
    for _ in range(3):
        await work(tmp_path, 2)
        await tabulate(tmp_path)
    async with hosted(tmp_path, echo) as dagbok:
        await dagbok.run(spec("echo"))
        DataFolder(tmp_path).prepare()


async def test_damaged_tables_say_nothing_of_the_log(tmp_path: Path) -> None:
    await work(tmp_path)
    (tmp_path / "tables.db").write_bytes(b"no database at all" * 1_000)
    DataFolder(tmp_path).prepare()
    (tmp_path / "tables.db").unlink()
    with closing(sqlite3.connect(tmp_path / "tables.db")) as database:
        database.execute("CREATE TABLE positions (partition INTEGER)")
        database.commit()
    DataFolder(tmp_path).prepare()
