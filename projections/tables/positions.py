"""Where each view stands in the log, and which version of its tables is the live one."""

from __future__ import annotations

from typing import Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from dagbok.events.rule import GENESIS, Position
from dagbok.projections.tables.rows import TEXT

METADATA: Final = sa.MetaData()

VIEWS: Final = sa.Table(
    "views",
    METADATA,
    sa.Column("view", TEXT, primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("layout", sa.BigInteger, nullable=False),
    sa.Column("tables", TEXT, nullable=False),
)
"""The live version of each view: its layout, and the names of its tables as a JSON list."""

POSITIONS: Final = sa.Table(
    "positions",
    METADATA,
    sa.Column("view", TEXT, primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("partition", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("next_offset", sa.BigInteger, nullable=False),
    sa.Column("last_command_offset", sa.BigInteger, nullable=False),
    sa.Column("head_hash", TEXT, nullable=False),
    sa.Column("head_offset", sa.BigInteger, nullable=False),
    sa.Column("void", sa.BigInteger, nullable=False),
)
"""One row per version of a view and partition. `void` counts the records that were skipped, as everybody skips them."""

# The same words in both databases, and yet two classes.
_INSERTS: Final[dict[str, sa.Insert]] = {
    "postgresql": postgresql.insert(POSITIONS).on_conflict_do_nothing(),
    "sqlite": sqlite.insert(POSITIONS).on_conflict_do_nothing(),
}
_P: Final = POSITIONS.c
_ADVANCE: Final = (
    sa.update(POSITIONS)
    .where(
        _P.view == sa.bindparam("of_view"),
        _P.version == sa.bindparam("of_version"),
        _P.partition == sa.bindparam("of_partition"),
        _P.next_offset == sa.bindparam("old_offset"),
    )
    .values(
        void=_P.void + sa.bindparam("more_void"),
        **{name: sa.bindparam(name) for name in Position.__struct_fields__},
    )
)
"""Made once: it runs for every batch, however small."""


class Live(msgspec.Struct, frozen=True):
    """What `views` says of a view."""

    version: int
    layout: int
    tables: tuple[str, ...]


def live_views(connection: sa.Connection) -> dict[str, Live]:
    """The live versions by the name of the view. Raises `msgspec.MsgspecError` for rows that nobody has written."""
    rows = connection.execute(sa.select(VIEWS.c.view, VIEWS.c.version, VIEWS.c.layout, VIEWS.c.tables))
    return {
        view: msgspec.convert({"version": version, "layout": layout, "tables": msgspec.json.decode(names or "")}, Live)
        for view, version, layout, names in rows
    }


def set_live(connection: sa.Connection, view: str, live: Live) -> None:
    """Make a version the live one."""
    connection.execute(sa.delete(VIEWS).where(VIEWS.c.view == view))
    names = msgspec.json.encode(live.tables).decode()
    connection.execute(sa.insert(VIEWS).values(view=view, version=live.version, layout=live.layout, tables=names))


def versions(connection: sa.Connection, view: str) -> list[int]:
    """All versions of a view that have a position, ascending: the live one and those that are being built."""
    return list(connection.scalars(sa.select(_P.version).where(_P.view == view).distinct().order_by(_P.version)))


def read_position(connection: sa.Connection, view: str, version: int, partition: int) -> Position | None:
    """Where a version stands in a partition; None before `begin`, and when it was replaced. Raises like
    `live_views`."""
    row = connection.execute(
        sa.select(_P.next_offset, _P.last_command_offset, _P.head_hash, _P.head_offset).where(
            *_is(view, version, partition)
        )
    ).one_or_none()
    if row is None:
        return None
    return msgspec.convert(dict(zip(Position.__struct_fields__, row, strict=True)), Position)


def begin(connection: sa.Connection, view: str, version: int, partition: int) -> None:
    """A version begins to read a partition, at its very start. Nothing when it has begun already: another process was
    faster."""
    row = {"view": view, "version": version, "partition": partition, "void": 0, **msgspec.structs.asdict(GENESIS)}
    connection.execute(_INSERTS[connection.dialect.name], row)


def lock(connection: sa.Connection, view: str) -> None:
    """From here on to the end of the transaction, no version of the view moves on."""
    rows = sa.select(_P.version).where(_P.view == view).order_by(_P.version, _P.partition)
    connection.execute(rows.with_for_update())


def advance(
    connection: sa.Connection, view: str, version: int, partition: int, old: Position, new: Position, void: int
) -> bool:
    """Move on from `old` to `new` over `void` skipped records. False: it does not stand there any more; roll back."""
    place = {"of_view": view, "of_version": version, "of_partition": partition, "old_offset": old.next_offset}
    moved = connection.execute(_ADVANCE, {**place, **msgspec.structs.asdict(new), "more_void": void})
    return moved.rowcount == 1


def forget(connection: sa.Connection, view: str, version: int) -> None:
    """A version is no more: whoever feeds it finds no position."""
    connection.execute(sa.delete(POSITIONS).where(_P.view == view, _P.version == version))


def void_records(connection: sa.Connection, view: str, version: int) -> int:
    """How many void records a version has skipped, in all partitions."""
    # A sum of integers is of another type in each database.
    return int(connection.scalar(sa.select(sa.func.sum(_P.void)).where(_P.view == view, _P.version == version)) or 0)


def _is(view: str, version: int, partition: int) -> tuple[sa.ColumnElement[bool], ...]:
    return _P.view == view, _P.version == version, _P.partition == partition
