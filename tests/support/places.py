"""Where the tables of a test are: a SQLite file or a schema in PostgreSQL. What holds of one must hold of the other."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import sqlalchemy as sa
from psycopg import sql

from dagbok.projections.projector import Projector
from dagbok.projections.store import Tables
from dagbok.projections.tables.database import BUSY_TIMEOUT_S
from dagbok.projections.views import VIEWS
from dagbok.projections.views.view import View
from tests.support.logbuilder import LogBuilder

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
SITES = (SQLITE, POSTGRESQL)


class Place(ABC):
    """Has tables by name; those of one name are the same ones, however often they are opened. Closes them all."""

    def __init__(self) -> None:
        self._opened: list[Tables] = []

    def open(
        self, name: str = "tables", views: Sequence[View] = VIEWS, *, busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> Tables:
        """Tables, made when they are not there."""
        tables = self._open(name, views, busy_timeout_s)
        self._opened.append(tables)
        return tables

    async def projected(self, builder: LogBuilder, batch_records: int = 2_000) -> Tables:
        """Tables that have taken in what `builder` has written."""
        tables = self.open()
        await Projector(await builder.log(), tables, batch_records=batch_records).catch_up()
        return tables

    def close(self) -> None:
        """Close what was opened here."""
        for tables in self._opened:
            tables.close()

    def table_names(self, tables: Tables, name: str = "tables") -> list[str]:
        """All tables that are there."""
        with tables.reading() as connection:
            return sorted(sa.inspect(connection).get_table_names(self.schema(name)))

    @abstractmethod
    def schema(self, name: str = "tables") -> str | None:
        """The schema of the tables of this name, if the database has schemas."""

    @abstractmethod
    def address(self, name: str = "tables") -> str:
        """For `open_address`, in another process."""

    @abstractmethod
    def _open(self, name: str, views: Sequence[View], busy_timeout_s: float) -> Tables: ...


class SqlitePlace(Place):
    """Files in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def schema(self, name: str = "tables") -> None:
        return None

    def address(self, name: str = "tables") -> str:
        return str(self._folder / f"{name}.db")

    def _open(self, name: str, views: Sequence[View], busy_timeout_s: float) -> Tables:
        return Tables.open(Path(self.address(name)), views, busy_timeout_s=busy_timeout_s)


class PostgresPlace(Place):
    """Schemas of a database whose names begin alike."""

    def __init__(self, url: str, prefix: str) -> None:
        super().__init__()
        self.url = url
        self._prefix = prefix

    async def somebody_waits(self) -> None:
        """Return when a transaction waits for the lock of another one."""
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            while await (await connection.execute(waiting)).fetchone() is None:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.005)

    async def end_connections(self) -> None:
        """End all other connections, as a server does that is restarted."""
        others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            await connection.execute(f"{others} AND datname = current_database() AND usename = current_user")

    def schema(self, name: str = "tables") -> str:
        return f"{self._prefix}_{name}"

    def address(self, name: str = "tables") -> str:
        return f"{self.url}#{self.schema(name)}"

    def _open(self, name: str, views: Sequence[View], busy_timeout_s: float) -> Tables:
        return Tables.connect(self.url, views, schema=self.schema(name), busy_timeout_s=busy_timeout_s)


Site = Callable[[], AbstractContextManager[Place]]
"""Gives a fresh place, and removes it."""


@contextmanager
def sqlite_place() -> Iterator[SqlitePlace]:
    """A folder of its own."""
    with TemporaryDirectory() as folder:
        place = SqlitePlace(Path(folder))
        try:
            yield place
        finally:
            place.close()


_numbers = count(1)


@contextmanager
def postgres_place(url: str) -> Iterator[PostgresPlace]:
    """Schemas of its own."""
    place = PostgresPlace(url, f"test{next(_numbers)}")
    drop_schemas(url, place.schema(""))
    try:
        yield place
    finally:
        place.close()
        drop_schemas(url, place.schema(""))


def drop_schemas(url: str, prefix: str) -> None:
    """Remove all schemas whose names begin with `prefix`."""
    with psycopg.connect(url, autocommit=True) as connection:
        named = connection.execute("SELECT nspname FROM pg_namespace WHERE starts_with(nspname::text, %s)", (prefix,))
        for (name,) in named.fetchall():
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def open_address(address: str, views: Sequence[View] = VIEWS) -> Tables:
    """The tables at `Place.address`."""
    if address.startswith("postgres"):
        url, _, schema = address.partition("#")
        return Tables.connect(url, views, schema=schema)
    return Tables.open(Path(address), views)
