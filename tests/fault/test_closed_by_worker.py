"""A function that closes what it has not opened: the log is whole, and no backup has to be restored."""

from __future__ import annotations

import gc
import os
import sqlite3
from pathlib import Path

import pytest

from dagbok import Code, Dagbok, DagbokError, Outcome, TaskContext, TaskSpec, verifier, worker
from dagbok.agents import patience
from dagbok.agents.queue.sqlite_file import QueueFile
from dagbok.events.errors import LogCorrupt, StorageFailed
from dagbok.events.log.port import EVENTS
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.log.sqlite_place import FilePlace
from dagbok.events.log.sqlite_schema import explain
from tests.contract.reading import read_all, records, values_of

CLOSED = "was closed by this process"


def _close_connections(folder: Path) -> int:
    """All of this process to files in the folder, as a function does that closes whatever it finds."""
    closed = 0
    for found in gc.get_objects():
        if isinstance(found, sqlite3.Connection):
            try:
                files = [row[2] for row in found.execute("PRAGMA database_list").fetchall()]
            except sqlite3.Error:
                continue  # closed, or of another thread
            if any(file and Path(file).is_relative_to(folder) for file in files):
                found.close()
                closed += 1
    return closed


async def test_a_log_whose_connections_were_closed_says_so_and_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = SqliteLog.open(path)
    await log.append(EVENTS, 0, records(b"a", b"b"))
    assert _close_connections(tmp_path) == 3
    for doing in (log.append(EVENTS, 0, records(b"c")), log.read(EVENTS, 0, 0, 9), log.bounds(EVENTS, 0)):
        with pytest.raises(StorageFailed, match=CLOSED) as told:
            await doing
        assert told.value.advice.startswith("the log is unharmed: start again")
    await log.close()
    again = SqliteLog.open(path)
    assert values_of(await read_all(again, EVENTS, 0)) == [b"a", b"b"]
    await again.close()


def _error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOTADB])
def test_closed_descriptors_are_told_from_a_broken_file(tmp_path: Path, code: int) -> None:
    path = tmp_path / "log.db"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    place = FilePlace(path)
    assert CLOSED not in str(explain(_error(code), path, place.is_open))
    os.close(descriptor)
    told = explain(_error(code), path, place.is_open)
    assert isinstance(told, StorageFailed)
    assert CLOSED in str(told)
    assert CLOSED not in str(explain(_error(code), path))  # a file that is being opened


def test_damage_is_damage_whatever_is_open(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.touch()
    assert isinstance(explain(_error(sqlite3.SQLITE_CORRUPT), path, FilePlace(path).is_open), LogCorrupt)


async def test_the_process_of_such_a_worker_ends_with_the_cause_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LONGEST_S", 0.1)

    @worker("tidy")
    async def tidy(task: TaskContext) -> Outcome:
        if not (tmp_path / "closed").exists():
            (tmp_path / "closed").touch()
            assert _close_connections(tmp_path) >= 3
        return Outcome.candidate(task.attempt)

    @verifier("yes", version="1")
    def yes(candidate: object, task: TaskContext) -> bool:
        return True

    spec = TaskSpec(goal="tidy up", worker="tidy", verifier="yes")
    with pytest.raises(DagbokError, match=CLOSED) as ended:
        async with Dagbok.embedded(tmp_path / "data", tidy, yes, projector="none") as dagbok:
            await dagbok.run(spec, key="once")
    assert ended.value.code == Code.STORAGE_FAILED
    async with Dagbok.embedded(tmp_path / "data", tidy, yes, projector="none") as dagbok:
        assert (await dagbok.run(spec, key="once")).succeeded


def test_a_queue_whose_connection_was_closed_is_made_anew(tmp_path: Path) -> None:
    file = QueueFile(tmp_path / "queue.db", 1.0)
    assert file.open(create=True)
    assert _close_connections(tmp_path) == 1
    with pytest.raises(sqlite3.ProgrammingError) as closed:
        file.look()
    assert file.is_damage(closed.value)
    file.make_anew("it was closed")
    assert file.open(create=True)
    file.look()
    file.close()
