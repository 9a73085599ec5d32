"""What a projector must not go over: events it does not know, logs that are not the one it has read, damaged files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from dagbok.events.codes import Code
from dagbok.events.commit import SEAL_VERSION
from dagbok.events.errors import FormatTooNew, LogCorrupt, LogLost, StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, Record
from dagbok.events.run.commands import PauseRun
from dagbok.projections.projector import Projector, rebuild
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables
from dagbok.projections.tables.sqlite import SqliteDatabase
from dagbok.testing.make import start, task
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.places import Place
from tests.support.projecting import dump, project
from tests.support.sealing import body, next_value

REFUSED = ("CommandRefused", 1, '{"code":"not_found","reason":"none"}')
UNKNOWN = {
    "a new event": {"body": body(REFUSED, ("ActionPending", 1, "{}")), "count": 2},
    "a new version": {"body": body(("CommandRefused", 2, "{}"))},
    "a new codec": {"body": body(REFUSED), "codec": "json+brotli"},
    "a new seal": {"body": body(REFUSED), "v": SEAL_VERSION + 1},
}
DAMAGED = {
    "no body": {"body": b"no body"},
    "another event": {"body": body(("CommandRefused", 1, '{"code":7}'))},
    "fewer events": {"body": body(REFUSED), "count": 2},
    "not compressed": {"body": body(REFUSED), "codec": "json+zstd"},
}


def _history() -> LogBuilder:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    builder.send("run-1", PauseRun())
    return builder


@pytest.mark.parametrize("what", UNKNOWN)
async def test_it_halts_before_what_it_does_not_know_and_takes_in_all_before_it(
    place: Place, tmp_path: Path, what: str
) -> None:
    builder = _history()
    log = await builder.log()
    value = next_value(builder, **UNKNOWN[what])  # type: ignore[arg-type]
    await log.append(EVENTS, 0, [Record("", value), Record("", value)])
    tables = place.open()
    projector = Projector(log, tables)
    for _ in range(2):
        with pytest.raises(FormatTooNew):
            await projector.catch_up()
        assert Queries(tables).position().next_offset == 2
    assert dump(tables) == await project(await builder.log(), tmp_path / "known.db")
    tables.close()


@pytest.mark.parametrize("what", DAMAGED)
async def test_it_halts_at_a_body_that_is_not_what_its_seal_says(place: Place, what: str) -> None:
    builder = _history()
    log = await builder.log()
    value = next_value(builder, **DAMAGED[what])  # type: ignore[arg-type]
    await log.append(EVENTS, 0, [Record("", value)])
    tables = place.open()
    with pytest.raises(LogCorrupt):
        await Projector(log, tables).catch_up()
    tables.close()


async def test_a_log_that_became_shorter_is_lost(place: Place) -> None:
    tables = place.open()
    await Projector(await _history().log(), tables).catch_up()
    with pytest.raises(LogLost, match="offset 1"):
        await Projector(MemoryLog(), tables).catch_up()
    tables.close()


async def test_tables_of_another_log_are_recognised_and_can_be_built_anew(place: Place, tmp_path: Path) -> None:
    tables = place.open()
    await Projector(await _history().log(), tables).catch_up()
    other = random_history(seed=1, steps=20)
    log = await other.log()
    with pytest.raises(LogLost, match="another commit at offset 1"):
        await Projector(log, tables).catch_up()
    await rebuild(log, tables)
    await Projector(log, tables).catch_up()
    assert dump(tables) == await project(log, tmp_path / "whole.db")
    tables.close()


async def test_tables_that_are_ahead_of_their_log_can_be_built_anew(place: Place, tmp_path: Path) -> None:
    tables = place.open()
    await Projector(await random_history(seed=1, steps=20).log(), tables).catch_up()
    log = await _history().log()
    await rebuild(log, tables)
    assert dump(tables) == await project(log, tmp_path / "whole.db")
    tables.close()


def test_a_file_that_is_no_database_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    path.write_bytes(b"no database " * 1_000)
    with pytest.raises(StorageFailed, match="built again from the log"):
        Tables.open(path)


async def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    log = await random_history(seed=1, steps=200).log()
    await project(log, path)
    data = bytearray(path.read_bytes())
    data[4096 * 4 :] = b"\xff" * (len(data) - 4096 * 4)
    path.write_bytes(data)
    with pytest.raises(StorageFailed, match="built again from the log"):
        await project(log, path)


async def test_a_file_that_is_locked_too_long_says_so(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    log = await _history().log()
    tables = Tables.open(path, busy_timeout_s=0.01)
    holder = sqlite3.connect(path)
    holder.execute("BEGIN IMMEDIATE")
    projector = Projector(log, tables)
    with pytest.raises(StorageFailed, match="locked by another process") as locked:
        await projector.catch_up()
    assert (locked.value.code, locked.value.retry) == (Code.FOLDER_BUSY, True)
    assert Queries(tables).list_runs("acme", "docs") == []  # reading goes on
    holder.rollback()
    holder.close()
    await projector.catch_up()
    assert len(Queries(tables).list_runs("acme", "docs")) == 1
    tables.close()


async def test_a_full_disk_stops_it_and_nothing_is_lost(tmp_path: Path) -> None:
    log = await random_history(seed=1, steps=300).log()
    database = SqliteDatabase(tmp_path / "tables.db")
    pages = [40]

    def _limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count={pages[0]}")

    sa.event.listen(database.engine, "connect", _limit)
    tables = Tables(database)
    projector = Projector(log, tables, batch_records=20)
    with pytest.raises(StorageFailed, match="full") as full:
        await projector.catch_up()
    assert full.value.code is Code.STORAGE_FAILED
    stood = Queries(tables).position().next_offset
    assert 0 < stood < 300
    pages[0] = 1_000_000
    database.close()
    await projector.catch_up()
    assert dump(tables) == await project(log, tmp_path / "whole.db")
    tables.close()
