"""The file of the SQLite log: what is refused when it is opened, and what is said when it is damaged."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, FormatTooNew, LogCorrupt, StorageFailed
from dagbok.events.log import sqlite_reader, sqlite_schema, sqlite_writer
from dagbok.events.log.port import COMMANDS, EVENTS, Record, Topic
from dagbok.events.log.sqlite import SqliteLog
from tests.contract.reading import read_all, records

TOPICS: tuple[Topic, ...] = (COMMANDS, EVENTS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


async def write(path: Path) -> None:
    log = SqliteLog.open(path)
    await log.append(EVENTS, 0, [Record("run:a", b"%d" % number * 200, {"writer": "a"}) for number in range(100)])
    await log.append(COMMANDS, 0, records(*[bytes(9_000)] * 5))
    await log.close()


async def read_and_append(path: Path) -> None:
    log = SqliteLog.open(path)
    try:
        for topic in TOPICS:
            for record in await read_all(log, topic, 0):
                assert log.value_at(topic, 0, record.offset) == record.value
            await log.append(topic, 0, records(b"more"))
    finally:
        await log.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"not a database" * 1000)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("CREATE TABLE shopping (item TEXT)")


def no_format(path: Path) -> None:
    asyncio.run(write(path))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("DELETE FROM meta")


def newer_format(path: Path) -> None:
    asyncio.run(write(path))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("UPDATE meta SET value = 2 WHERE name = 'format'")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (no_database, LogCorrupt, "not a database"),
        (foreign_database, LogCorrupt, "not a log of dagbok"),
        (no_format, LogCorrupt, "format"),
        (newer_format, FormatTooNew, "has format 2, this version knows 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line_and_kept(
    path: Path, make: Callable[[Path], None], error: type[DagbokError], message: str
) -> None:
    make(path)
    before = path.read_bytes()

    with pytest.raises(error, match=message) as refusal:
        SqliteLog.open(path)
    assert "\n" not in str(refusal.value)
    assert path.read_bytes() == before


def test_a_file_that_was_cut_is_reported(path: Path) -> None:
    asyncio.run(write(path))
    path.write_bytes(path.read_bytes()[:20_000])

    with pytest.raises(LogCorrupt):
        asyncio.run(read_and_append(path))


def test_whatever_byte_is_damaged_the_error_is_one_of_ours(path: Path) -> None:
    asyncio.run(write(path))
    whole = path.read_bytes()
    codes: set[Code] = set()
    readable = 0
    for position in range(0, len(whole), 997):
        damaged = bytearray(whole)
        damaged[position : position + 3] = b"\x7f\x00\xff"
        path.write_bytes(damaged)
        try:
            asyncio.run(read_and_append(path))
            readable += 1
        except DagbokError as error:
            codes.add(error.code)
        for rest in path.parent.iterdir():
            rest.unlink()
    assert Code.LOG_CORRUPT in codes
    assert codes <= {Code.LOG_CORRUPT, Code.STORAGE_FAILED}
    assert readable, "inside a value SQLite notices nothing: the chain of hashes does"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET headers = 5 WHERE id = 3",
        "UPDATE events SET headers = X'00' WHERE id = 3",
        "UPDATE events SET headers = '[1]' WHERE id = 3",
        "UPDATE events SET ts = 'noon' WHERE id = 100",
        "UPDATE events SET ts = 1.5 WHERE id = 3",
        "UPDATE events SET value = 'text' WHERE id = 3",
        "UPDATE sqlite_sequence SET seq = 'many' WHERE name = 'events'",
        "UPDATE sqlite_sequence SET seq = 1.5 WHERE name = 'commands'",
        "INSERT INTO meta VALUES ('last_ms.events', 'noon')",
    ],
)
def test_a_value_of_another_type_than_was_written_is_damage(path: Path, statement: str) -> None:
    asyncio.run(write(path))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute(statement)

    with pytest.raises(LogCorrupt):
        asyncio.run(read_and_append(path))


def test_a_damaged_name_in_the_schema_is_reported_although_it_is_no_text(path: Path) -> None:
    asyncio.run(write(path))
    path.write_bytes(path.read_bytes().replace(b"sqlite_autoindex_meta_1", b"sqlite_auto\xff\xfe\xfdex_meta_1"))

    with pytest.raises(LogCorrupt):
        SqliteLog.open(path)


def test_records_that_are_out_of_order_are_reported_and_send_no_reader_round_in_circles(path: Path) -> None:
    asyncio.run(write(path))
    content = bytearray(path.read_bytes())
    rowid = content.index(b"run:a" + b"5" * 200) - 14  # before it: seven bytes that describe the columns, six of time
    assert content[rowid] == 6
    content[rowid] = 2
    path.write_bytes(content)

    with pytest.raises(LogCorrupt, match="offset 1 is not a record"):
        asyncio.run(read_and_append(path))


def test_a_log_that_cannot_be_opened_leaves_no_connection_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(write(path))
    opened: list[sqlite3.Connection] = []

    def connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
        if len(opened) == 2:
            raise sqlite3.OperationalError("unable to open database file")
        opened.append(sqlite_schema.connect(path, busy_timeout_s))
        return opened[-1]

    monkeypatch.setattr(sqlite_reader, "connect", connect)
    monkeypatch.setattr(sqlite_writer, "connect", connect)
    with pytest.raises(DagbokError):
        SqliteLog.open(path)
    assert len(opened) == 2
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed):
        SqliteLog.open(tmp_path / "nowhere" / "log.db")
