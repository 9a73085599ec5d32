"""Tables in memory, emptied and used again: opening fresh ones for every schedule would cost more than the schedule."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dagbok.events.log.port import Log
from dagbok.projections.projector import Projector
from dagbok.projections.store import Tables
from dagbok.projections.tables.rows import Row

Rows = dict[str, list[Row]]

IN_MEMORY = Path(":memory:")
BATCH_RECORDS = 1_000


@cache
def _tables(use: str) -> Tables:
    return Tables.open(IN_MEMORY)


def empty_tables(use: str = "live") -> Tables:
    """Empty tables. There is one set of them for each `use`, in each thread that opened them."""
    tables = _tables(use)
    with tables.writing() as connection:
        for table in ("positions", *[row.table for view in tables.views.values() for row in view.rows]):
            connection.exec_driver_sql(f'DELETE FROM "{table}"')
    return tables


def dump(tables: Tables) -> Rows:
    """All rows of all live tables, by key."""
    with tables.reading() as connection:
        return {
            row.table: sorted(
                tables.live(connection, name).select(row), key=lambda item: [getattr(item, key) for key in item.key]
            )
            for name, view in tables.views.items()
            for row in view.rows
        }


async def rebuilt(log: Log) -> Rows:
    """The rows of tables that have just taken in the whole log."""
    tables = empty_tables("rebuilt")
    await Projector(log, tables, batch_records=BATCH_RECORDS).catch_up()
    return dump(tables)
