"""A row type is a table: one definition for the columns, for what a view writes and for what a query returns."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, ClassVar, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

GREATEST: Final = 2**63 - 1
"""The greatest number that a column holds."""


TEXT: Final = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
"""Text that is compared and sorted by its bytes (UTF-8), whatever the language of the database: a page of an answer
begins where the one before ended, in every database alike."""


class Row(msgspec.Struct, gc=False):
    """Base of all rows: one field per column, in their order. Every row carries the tenant and project it belongs to.

    `table` is the name, `key` the primary key, `changing` what may change after the insert, `indexes` further indexes.
    `fill_percent`: how full pages are when rows come; where rows change, PostgreSQL puts their new versions beside the
    old ones and leaves the indexes alone while there is room. A row holds nothing but scalars: the collector of garbage
    need not look at it.
    """

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    changing: ClassVar[tuple[str, ...]] = ()
    indexes: ClassVar[tuple[tuple[str, ...], ...]] = ()
    fill_percent: ClassVar[int] = 100

    tenant: str
    project: str


# A mapping from Python types to column types cannot be typed tighter than this.
_COLUMN_TYPES: Final[dict[object, sa.types.TypeEngine[Any]]] = {str: TEXT, int: sa.BigInteger(), bool: sa.Boolean()}


def table_of(row: type[Row], metadata: sa.MetaData, name: str, mark: str) -> sa.Table:
    """The table of a row type under `name`. `mark` keeps the names of its indexes apart from those of others."""
    hints = get_type_hints(row)
    columns = [_column(field, hints[field], row) for field in row.__struct_fields__]
    table = sa.Table(name, metadata, *columns, postgresql_with={"fillfactor": row.fill_percent})
    for indexed in row.indexes:
        sa.Index("_".join((row.table, *indexed, mark)), *[table.c[column] for column in indexed])
    return table


def column_types(fields: type[msgspec.Struct]) -> dict[str, sa.types.TypeEngine[Any]]:
    """The column type of each field of a row type, or of a change to rows."""
    hints = get_type_hints(fields)
    return {name: _COLUMN_TYPES[_plain(hints[name])[0]] for name in fields.__struct_fields__}


def _column(name: str, hint: object, row: type[Row]) -> sa.Column[Any]:
    plain, nullable = _plain(hint)
    return sa.Column(name, _COLUMN_TYPES[plain], nullable=nullable, primary_key=name in row.key, autoincrement=False)


def _plain(hint: object) -> tuple[object, bool]:
    """The Python type of a column without None and Literal, and whether it may be NULL."""
    if get_origin(hint) in (Union, UnionType):
        (inner,) = [arg for arg in get_args(hint) if arg is not NoneType]
        return _plain(inner)[0], True
    if get_origin(hint) is Literal:
        return str, False
    return hint, False
