"""The tables in a SQLite file: embedded, no server."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from dagbok.events.codes import Code
from dagbok.events.errors import LET_WRITE, StorageFailed
from dagbok.projections.tables.database import BUSY_TIMEOUT_S, Database, in_one_line

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


class SqliteDatabase(Database):
    """A file. One transaction writes at a time, and has the lock for it from its first statement on; so everything that
    others must not do meanwhile they do not do."""

    def __init__(self, path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """The file need not be there yet. Connections are opened on demand."""
        self.shown = str(path)
        self.engine = sa.create_engine(
            sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": busy_timeout_s}, pool_size=4
        )
        sa.event.listen(self.engine, "connect", _on_connect)
        sa.event.listen(self.engine, "begin", _on_begin)

    @property
    def dialect(self) -> sa.Dialect:
        return self.engine.dialect

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        with (
            self._explained(),
            self.engine.connect().execution_options(**{_WRITES: True}) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def reading(self, *, prepared: bool = True) -> Iterator[sa.Connection]:
        with self._explained(), self.engine.connect() as connection, connection.begin():
            yield connection

    def prepare(self, connection: sa.Connection) -> None:
        """Nothing: whoever writes is alone."""

    def lock_versions(self, connection: sa.Connection, *, replacing: bool) -> None:
        """Nothing: whoever writes is alone, and a snapshot holds the tables too."""

    def try_alone(self) -> Callable[[], None]:
        """Always: on one machine, few processes open the file."""
        return lambda: None

    def table_names(self, connection: sa.Connection) -> set[str]:
        return set(sa.inspect(connection).get_table_names())

    def damaged(self, cause: object) -> StorageFailed:
        return StorageFailed(
            f"{self.shown} is damaged: {in_one_line(cause)}",
            advice="remove the file: its tables are built again from the log",
        )

    def close(self) -> None:
        self.engine.dispose()

    def _explain(self, error: sa.exc.DBAPIError) -> StorageFailed:
        cause = error.orig
        number = getattr(cause, "sqlite_errorcode", None)
        primary = number & 0xFF if isinstance(number, int) else None
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StorageFailed(f"{self.shown} is locked by another process: {cause}", code=Code.FOLDER_BUSY)
        if primary in _DAMAGE or (primary is None and isinstance(cause, sqlite3.Error)):  # no code: a text is no text
            return self.damaged(cause or error)
        if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            return StorageFailed(f"{self.shown}: {cause}", advice=LET_WRITE)
        return StorageFailed(f"{self.shown}: {cause}")


def _on_connect(connection: Any, _record: object) -> None:
    # The driver would open transactions by itself, and not for statements that read or define tables.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _on_begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
