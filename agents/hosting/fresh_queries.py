"""The tables of a data folder for whoever asks now and then, in any process: see `LazyTables`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.lazy_tables import LazyTables
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.log.sqlite import SqliteLog


@asynccontextmanager
async def open_fresh_queries(folder: DataFolder) -> AsyncIterator[LazyTables]:
    """Open a folder that is there; raises `Refused` (`not_found`) when it has no log, `LogLost` when it had one,
    else like `Tables.open`."""
    if not folder.has_log():
        raise Refused(Code.NOT_FOUND, f"{folder.root} is no data folder: it has no log", advice="name an existing one")
    log = SqliteLog.open(folder.log)
    tables = LazyTables(folder, log)
    try:
        await tables.open()
        yield tables
    finally:
        await tables.close()
        await log.close()
