"""Tables built from a log, and all their rows, to compare."""

from __future__ import annotations

from pathlib import Path

from dagbok.events.log.port import Log
from dagbok.projections.projector import Projector
from dagbok.projections.store import Tables
from dagbok.projections.tables.rows import Row
from tests.support.logbuilder import LogBuilder

Rows = dict[str, list[Row]]


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


async def project(log: Log, path: Path, batch_records: int = 2_000) -> Rows:
    """The rows of tables in a new file that has taken in the whole log."""
    tables = Tables.open(path)
    try:
        for partition in range(log.partitions):
            await Projector(log, tables, partition, batch_records=batch_records).catch_up()
        return dump(tables)
    finally:
        tables.close()


async def projected(builder: LogBuilder, path: Path, batch_records: int = 2_000) -> Tables:
    """Tables in a new file that have taken in what `builder` has written. The caller closes them."""
    tables = Tables.open(path)
    await Projector(await builder.log(), tables, batch_records=batch_records).catch_up()
    return tables
