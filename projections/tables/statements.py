"""Statements that run for thousands of rows at a time.

SQLAlchemy Core writes the SQL of each once, for whatever dialect; rows then go to the driver as they are. Core's own
way for many rows costs four times as much as the insert itself (16 µs instead of 4 for a row of 20 columns). A server
is sent all rows at once where that means the same (`bulk.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, Protocol

import msgspec
import sqlalchemy as sa

from dagbok.projections.tables.bulk import PREFIX, Bulk, Copy, key_of
from dagbok.projections.tables.rows import Row, column_types


class Patch(msgspec.Struct, gc=False):
    """Base of changes to rows that are not read first. Fields are the parameters of the statement, without `PREFIX`."""

    row: ClassVar[type[Row]]

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        """The update, for one patch."""
        raise NotImplementedError


class Statement(Protocol):
    """A statement for many rows or patches of one type, of which there is at least one; `sql` is what the database is
    told."""

    sql: str

    def run(self, connection: sa.Connection, items: Sequence[Row] | Sequence[Patch]) -> None:
        """Run it for each item, as if one by one in their order."""


def prepared(
    statement: sa.Insert | sa.Update, table: sa.Table, items: type[Row] | type[Patch], dialect: sa.Dialect
) -> Statement:
    """The statement on `table` for items of a type, as the database takes it best."""
    if dialect.name == "postgresql":
        if isinstance(statement, sa.Insert):
            return Copy(table, column_types(items), dialect)
        if key_of(statement) is not None:
            return Bulk(statement, column_types(items), dialect)
    return Compiled(statement, dialect)


class Compiled:
    """SQL of the dialect, run once per item by the driver, and how to take its parameters from a row or patch."""

    def __init__(self, statement: sa.Insert | sa.Update, dialect: sa.Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        if compiled.positiontup is None:
            raise ValueError(f"the dialect {dialect.name} must be opened with a positional paramstyle")
        self.sql = str(compiled)
        self._fields = _taker(compiled.positiontup, compiled.params)

    def run(self, connection: sa.Connection, items: Sequence[Row] | Sequence[Patch]) -> None:
        """Run the statement once per item, in their order."""
        if items:
            connection.exec_driver_sql(self.sql, list(map(self._fields, items)))


def insert_of(row: type[Row], table: sa.Table) -> sa.Insert:
    """Insert whole rows. A row that is there already is an error."""
    return sa.insert(table).values({name: bound(name) for name in row.__struct_fields__})


def update_of(row: type[Row], table: sa.Table) -> sa.Update:
    """Write what may change of rows that are there."""
    where = [table.c[name] == bound(name) for name in row.key]
    return sa.update(table).where(*where).values({name: bound(name) for name in row.changing})


def bound(name: str) -> sa.BindParameter[Any]:
    """The parameter that takes the field `name`."""
    return sa.bindparam(PREFIX + name)


def _taker(names: Sequence[str], values: Mapping[str, object]) -> Callable[[object], tuple[object, ...]]:
    """Takes the parameters from an item, in the order of `names`; those without prefix are constants."""
    fields = [name.removeprefix(PREFIX) for name in names]
    if len(fields) > 1 and all(name.startswith(PREFIX) for name in names):
        return attrgetter(*fields)
    takers = [
        attrgetter(field) if name.startswith(PREFIX) else partial(_constant, values[name])
        for name, field in zip(names, fields, strict=True)
    ]
    return lambda item: tuple([take(item) for take in takers])


def _constant(value: object, item: object) -> object:
    return value


StatementOf = Callable[[type[Row], sa.Table], sa.Insert | sa.Update]
