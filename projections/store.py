"""The tables: opened, created, and replaced by a version that was built beside them (`projector.py`, `rebuild`).

Whatever is here follows from the log. Losing the file costs the time to build it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import sqlalchemy as sa

from dagbok.events.codes import Code
from dagbok.events.errors import FormatTooNew, StorageFailed
from dagbok.events.rule import Position
from dagbok.projections.tables import positions
from dagbok.projections.tables.database import BUSY_TIMEOUT_S, Database
from dagbok.projections.tables.positions import Live
from dagbok.projections.tables.postgres import CONNECTIONS, STATEMENT_TIMEOUT_S, WRITERS, PostgresDatabase
from dagbok.projections.tables.rows import Row
from dagbok.projections.tables.session import Session, ViewTables, built_name
from dagbok.projections.tables.sqlite import SqliteDatabase
from dagbok.projections.views import VIEWS
from dagbok.projections.views.view import View


class Tables:
    """A database of views. May be used from any thread and by several processes at once.

    Every method may raise `StorageFailed`: the tables are damaged (they can be built again), locked too long, the disk
    fails, or the server is not there.
    """

    def __init__(self, database: Database, views: Sequence[View] = VIEWS) -> None:
        """Use a database, which `close` closes. Creates what is not there."""
        self._database = database
        self.views: Mapping[str, View] = {view.name: view for view in views}
        self._tables: dict[tuple[str, int, bool], ViewTables] = {}
        try:
            self._prepare()
        except BaseException:
            database.close()
            raise

    @classmethod
    def open(cls, path: Path, views: Sequence[View] = VIEWS, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Tables:
        """Open the SQLite file `path`, and create it when it is not there (its folder must be). Blocks, milliseconds.

        Raises `FormatTooNew` when a newer dagbok has built a view, and `StorageFailed`.
        """
        return cls(SqliteDatabase(path, busy_timeout_s), views)

    @classmethod
    def connect(
        cls,
        url: str,
        views: Sequence[View] = VIEWS,
        *,
        schema: str | None = None,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        statement_timeout_s: float = STATEMENT_TIMEOUT_S,
        connections: int = CONNECTIONS,
        writers: int = WRITERS,
    ) -> Tables:
        """Connect to a PostgreSQL database (`postgresql://user:password@host:5432/database`, parameters as libpq takes
        them), and create schema and tables when they are not there. Blocks, up to ten seconds for each address.
        `schema`: none: the one that the URL names (`…/database?schema=name`), else `dagbok`.

        A statement is ended after `statement_timeout_s`, one that waits for a lock after `busy_timeout_s`. At most
        `connections` read and `writers` write at once. A user that may only read needs tables that are there already.
        Raises `InvalidInput` when `url` or `schema` cannot be used, else like `open`.
        """
        database = PostgresDatabase(
            url,
            schema,
            busy_timeout_s=busy_timeout_s,
            statement_timeout_s=statement_timeout_s,
            connections=connections,
            writers=writers,
        )
        return cls(database, views)

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that writes."""
        return self._database.writing()

    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that reads one snapshot."""
        return self._database.reading()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._database.close()

    def damaged(self, why: str) -> StorageFailed:
        """The error for rows that no view has written like this."""
        return self._database.damaged(why)

    def outdated(self) -> list[str]:
        """The views whose tables an older dagbok has built in another layout: `rebuild` them."""
        with self.reading() as connection:
            live = self._live_views(connection)
        return [name for name, view in self.views.items() if live[name].layout < view.layout]

    def tables_of(self, view: View, version: int, *, live: bool) -> ViewTables:
        """The tables of one version of a view."""
        key = (view.name, version, live)
        if key not in self._tables:
            self._tables[key] = ViewTables(view.rows, version, self._database.dialect, live=live)
        return self._tables[key]

    def view_of(self, row: type[Row]) -> str:
        """The name of the view that writes rows of this type."""
        return next(name for name, view in self.views.items() if row in view.rows)

    def live(self, connection: sa.Connection, name: str) -> Session:
        """The live tables of a view, for a query. Raises like `live_version`."""
        view, version = self.views[name], self.live_version(connection, name)
        return Session(connection, self.tables_of(view, version, live=True))

    def live_version(self, connection: sa.Connection, name: str) -> int:
        """The live version of a view, in the layout of this code. Raises `FormatTooNew` or `StorageFailed` when it is
        in another one."""
        found, layout = self._live_views(connection)[name], self.views[name].layout
        if found.layout == layout:
            return found.version
        said = f"{self._database.shown}: the tables of {name} have layout {found.layout}, here it is {layout}"
        if found.layout > layout:
            raise FormatTooNew(said)
        raise StorageFailed(said, code=Code.SCHEMA_MISMATCH, advice="start dagbok up: it builds them again")

    def try_alone(self) -> Callable[[], None] | None:
        """Be the one who rebuilds views that are outdated, until what comes back is called or this process ends; None:
        another process does it."""
        return self._database.try_alone()

    def begin_version(self, name: str, partitions: int) -> int:
        """Create empty tables of a new version beside the live ones; they stand at the start of all partitions."""
        view = self.views[name]
        with self.writing() as connection:
            self._database.lock_versions(connection, replacing=False)
            live = self._live_views(connection)[name].version
            version = max([live, *positions.versions(connection, name)]) + 1
            self.tables_of(view, version, live=False).create(connection)
            for partition in range(partitions):
                positions.begin(connection, name, version, partition)
        return version

    def swap(self, name: str, version: int, stands: Sequence[Position], *, force: bool = False) -> bool:
        """Put a version that stands at `stands` in the place of the live one; whatever else was being built goes too.

        False, and nothing changes, when the live version has read more (unless `force`): what queries see never goes
        back. True also when another rebuild was faster; then this version is dropped.
        """
        view = self.views[name]
        with self.writing() as connection:
            self._database.lock_versions(connection, replacing=True)
            positions.lock(connection, name)
            live = self._live_views(connection)[name]
            if live.version > version:
                self._drop_built(connection, view, live, version)
                return True
            if not force and _is_ahead(connection, name, live.version, stands):
                return False
            positions.forget(connection, name, live.version)
            for table in live.tables:
                self._run(connection, "DROP TABLE IF EXISTS {}", table)
            for other in positions.versions(connection, name):
                if other != version:
                    self._drop_built(connection, view, live, other)
            for row in view.rows:
                self._run(connection, "ALTER TABLE {} RENAME TO {}", built_name(row, version), row.table)
            positions.set_live(connection, name, Live(version, view.layout, _names(view)))
        return True

    def discard(self, name: str, version: int) -> None:
        """Drop a version that was being built."""
        with self.writing() as connection:
            self._database.lock_versions(connection, replacing=False)
            live = self._live_views(connection)[name]
            if live.version != version:
                self._drop_built(connection, self.views[name], live, version)

    def _live_views(self, connection: sa.Connection) -> Mapping[str, Live]:
        found = positions.live_views(connection)
        if missing := self.views.keys() - found.keys():
            raise self.damaged(f"it has no view {min(missing)}")
        return found

    def _prepare(self) -> None:
        if not self._complete():
            with self.writing() as connection:
                self._database.prepare(connection)
                positions.METADATA.create_all(connection)
                live = positions.live_views(connection)
                for view in self.views.values():
                    if view.name not in live:
                        self.tables_of(view, 1, live=True).create(connection)
                        positions.set_live(connection, view.name, Live(1, view.layout, _names(view)))
        old = self.outdated()
        with self.reading() as connection:
            for name in self.views:
                if name not in old:
                    self.live_version(connection, name)

    def _complete(self) -> bool:
        """Whether all is there: looking needs no lock."""
        with self._database.reading(prepared=False) as connection:
            there = self._database.table_names(connection)
            return there >= set(positions.METADATA.tables) and positions.live_views(connection).keys() >= set(
                self.views
            )

    def _drop_built(self, connection: sa.Connection, view: View, live: Live, version: int) -> None:
        positions.forget(connection, view.name, version)  # first: it waits for whoever feeds it now
        for table in {*live.tables, *_names(view)}:
            self._run(connection, "DROP TABLE IF EXISTS {}", f"{table}__{version}")

    def _run(self, connection: sa.Connection, statement: str, *names: str) -> None:
        quote = self._database.dialect.identifier_preparer.quote
        connection.exec_driver_sql(statement.format(*[quote(name) for name in names]))


def _is_ahead(connection: sa.Connection, name: str, version: int, stands: Sequence[Position]) -> bool:
    for partition, stand in enumerate(stands):
        live = positions.read_position(connection, name, version, partition)
        if live is not None and live.next_offset > stand.next_offset:
            return True
    return False


def _names(view: View) -> tuple[str, ...]:
    return tuple(row.table for row in view.rows)
