"""What a view and a query work with: the tables of one version of a view, inside one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from dagbok.projections.tables.bulk import any_of
from dagbok.projections.tables.rows import Row, table_of
from dagbok.projections.tables.statements import Patch, Statement, StatementOf, insert_of, prepared, update_of

R = TypeVar("R", bound=Row)
Columns = Mapping[str, sa.Column[Any]]

IN_CHUNK = 5_000
"""Values in one IN: below what any driver takes as parameters."""


class ViewTables:
    """The tables of one version of a view. The live ones have plain names; a version that is being built has a mark."""

    def __init__(self, rows: Sequence[type[Row]], version: int, dialect: sa.Dialect, *, live: bool) -> None:
        self.rows = rows
        self.live = live
        self._metadata = sa.MetaData()
        self._tables = {
            row: table_of(row, self._metadata, row.table if live else built_name(row, version), str(version))
            for row in rows
        }
        self._dialect = dialect
        self._statements: dict[object, Statement] = {}

    def table(self, row: type[Row]) -> sa.Table:
        """The table of a row type."""
        return self._tables[row]

    def create(self, connection: sa.Connection) -> None:
        """Create all tables; an error when one is there."""
        self._metadata.create_all(connection, checkfirst=False)

    def statement(self, kind: StatementOf, row: type[Row]) -> Statement:
        """An insert or update of whole rows."""
        key, table = (kind, row), self._tables[row]
        if key not in self._statements:
            self._statements[key] = prepared(kind(row, table), table, row, self._dialect)
        return self._statements[key]

    def patch(self, patch: type[Patch]) -> Statement:
        """The statement of a patch."""
        if patch not in self._statements:
            table = self._tables[patch.row]
            self._statements[patch] = prepared(patch.statement(table), table, patch, self._dialect)
        return self._statements[patch]

    def among(self, row: type[Row], column: str, values: Sequence[str]) -> sa.ColumnElement[bool]:
        """The column has one of many values."""
        field = self._tables[row].c[column]
        return any_of(field, values) if self._dialect.name == "postgresql" else field.in_(values)


class Session:
    """One transaction on the tables of a view."""

    def __init__(self, connection: sa.Connection, tables: ViewTables) -> None:
        self.connection = connection
        self.tables = tables

    def insert(self, rows: Sequence[Row]) -> None:
        """Insert rows of one type. A row that is there already is an error."""
        if rows:
            self.tables.statement(insert_of, type(rows[0])).run(self.connection, rows)

    def update(self, rows: Sequence[Row]) -> None:
        """Write what may change of rows of one type."""
        if rows:
            self.tables.statement(update_of, type(rows[0])).run(self.connection, rows)

    def patch(self, patches: Sequence[Patch]) -> None:
        """Change rows unread, by patches of one type, in their order."""
        if patches:
            self.tables.patch(type(patches[0])).run(self.connection, patches)

    def select(self, row: type[R], *where: sa.ColumnElement[bool]) -> list[R]:
        """The rows that meet all conditions."""
        return self.fetch(row, sa.select(self.tables.table(row)).where(*where))

    def select_in(self, row: type[R], column: str, values: Sequence[str], *where: sa.ColumnElement[bool]) -> list[R]:
        """The rows that meet all conditions and have one of many `values` in `column`."""
        return [
            found
            for part in _chunks(values)
            for found in self.select(row, *where, self.tables.among(row, column, part))
        ]

    def fetch(self, row: type[R], statement: sa.Select[Any]) -> list[R]:
        """The rows of a statement that selects all columns of the type's table."""
        return [row(*values) for values in self.connection.execute(statement)]

    def columns(self, row: type[Row]) -> Columns:
        """The columns of a row type's table, for conditions."""
        return dict(self.tables.table(row).c)


def built_name(row: type[Row], version: int) -> str:
    """The name of a table while its version is being built beside the live one."""
    return f"{row.table}__{version}"


def _chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), IN_CHUNK):
        yield values[start : start + IN_CHUNK]
