"""Which run of a file is meant: the first that is not there or unfinished."""

from __future__ import annotations

import asyncio
from itertools import count

from dagbok.agents.hosting.folder import DataFolder
from dagbok.cli.advised import advised, as_argument
from dagbok.cli.entry import Entry
from dagbok.cli.reading import reading
from dagbok.cli.text import short
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.ids import run_id
from dagbok.projections.queries import Queries
from dagbok.projections.task_graph.state import CLOSED_RUN
from dagbok.settings import Settings


async def choose(settings: Settings, entry: Entry, *, new: bool) -> tuple[str, bool]:
    """The key of the first run that is absent or unfinished (with `new`: absent), and whether it is there."""
    if not DataFolder(settings.data).log.is_file():
        return entry.key(settings.data, 0), False
    async with reading(settings) as found:
        return await asyncio.to_thread(_first, found.queries, settings, entry, new)


def explained(error: Refused, entry: Entry, run: str, settings: Settings) -> Refused:
    """A refusal to start, as whoever gave the command has to understand it."""
    if error.code is not Code.CONFIG_MISMATCH:
        return error
    ways = "use --new to begin another run, or bring the file back to what it was"
    if "pinned" in error.message:
        amend = advised(settings, "amend", short(run), f"--import {as_argument(entry.file)}")
        ways = f"{amend} binds the run to the file as it is now; or {ways}"
    return Refused(
        error.code, f"{error.message}: the file is not what it was when the unfinished run began", advice=ways
    )


def _first(queries: Queries, settings: Settings, entry: Entry, new: bool) -> tuple[str, bool]:
    for number in count():
        key = entry.key(settings.data, number)
        row = queries.get_run(settings.tenant, settings.project, run_id(settings.tenant, settings.project, key))
        if row is None or (row.status not in CLOSED_RUN and not new):
            return key, row is not None
    raise AssertionError("count() has no end")
