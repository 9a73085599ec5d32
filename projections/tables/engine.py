"""The database of the tables: opened, with its transactions and errors. What is special to one database stands here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from dagbok.events.codes import Code
from dagbok.events.errors import LET_WRITE, StorageFailed

BUSY_TIMEOUT_S: Final = 10.0
"""How long a transaction waits for another process before it gives up."""

_WRITES: Final = "dagbok_writes"

_DAMAGE: Final = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,  # a table or a column is missing
    sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
}
"""The statements are always the same and fit the tables that were made, so one that does not has met other tables."""

_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",  # a power loss takes the newest rows; they are built again
    "PRAGMA cache_size=-32768",  # KiB
    "PRAGMA wal_autocheckpoint=4000",  # pages: one fsync for several batches
    "PRAGMA temp_store=MEMORY",
)


def open_sqlite(path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sa.Engine:
    """An engine for a SQLite file, which need not be there yet. Connections are opened on demand."""
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": busy_timeout_s}, pool_size=4
    )
    sa.event.listen(engine, "connect", _on_connect)
    sa.event.listen(engine, "begin", _on_begin)
    return engine


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that writes, and has the lock for it from its first statement on. Raises `StorageFailed`."""
    with explained(engine), engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
        yield connection


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that reads one snapshot. Raises `StorageFailed`."""
    with explained(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def explained(engine: sa.Engine) -> Iterator[None]:
    """Turn errors of the database into `StorageFailed`, which says what to do."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise explain(error, engine) from error
    except (UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise damaged(engine, error) from error


def explain(error: sa.exc.DBAPIError, engine: sa.Engine) -> StorageFailed:
    """What an error of the driver means for whoever meets it."""
    where, cause = engine.url.database, error.orig
    number = getattr(cause, "sqlite_errorcode", None)
    primary = number & 0xFF if isinstance(number, int) else None
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageFailed(f"{where} is locked by another process: {cause}", code=Code.FOLDER_BUSY)
    if primary in _DAMAGE or (primary is None and isinstance(cause, sqlite3.Error)):  # no code: a text is no text
        return damaged(engine, cause or error)
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return StorageFailed(
            f"{where}: {cause}", advice=LET_WRITE
        )
    return StorageFailed(f"{where}: {cause}")


def damaged(engine: sa.Engine, cause: object) -> StorageFailed:
    """The tables are not what was written into them."""
    said = " ".join(ascii(str(cause))[1:-1].split())[:200]
    return StorageFailed(
        f"{engine.url.database} is damaged: {said}", advice="remove the file: its tables are built again from the log"
    )


def _on_connect(connection: Any, _record: object) -> None:
    # The driver would open transactions by itself, and not for statements that read or define tables.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _on_begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
