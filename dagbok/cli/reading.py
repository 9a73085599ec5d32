"""Reading a data folder from any process, whether or not an owner is alive.

The tables are brought up to date first, in this process: beside the owner's projector that is safe, since rows and
position change together and only from the position they were read at.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from dagbok.agents.hosting.folder import DataFolder
from dagbok.cli import say
from dagbok.cli.advised import advised
from dagbok.cli.places import database_url, no_folder
from dagbok.cli.text import short
from dagbok.cli.wiring import open_kafka_log, open_log
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, Refused
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import EVENTS, Log
from dagbok.projections.projector import Projector
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables
from dagbok.projections.views.graph.rows import RunRow, TaskRow
from dagbok.settings import Settings

ALL_RUNS = 1_000_000
LOOK_S = 0.3
"""How often a command that follows looks into tables that others write."""


@dataclass(frozen=True)
class Reading:
    """An open data folder, or a log on Kafka with its database, seen as one tenant and project. `where` names it.
    `folder`: only without `on_kafka` it means anything. `more`: waits until there may be more in the tables."""

    where: str
    on_kafka: bool
    folder: DataFolder
    log: Log
    more: Callable[[], Awaitable[None]]
    tables: Tables
    queries: Queries
    settings: Settings

    @property
    def tenant(self) -> str:
        """Whose runs are seen."""
        return self.settings.tenant

    @property
    def project(self) -> str:
        """Of which of the tenant's projects."""
        return self.settings.project

    def find_run(self, name: str) -> RunRow:
        """The run of an id, of its first digits, or the newest one (`last`).

        Raises `Refused` (`not_found`), or `InvalidInput` when several begin like this.
        """
        if name == "last":
            newest = self.queries.list_runs(self.tenant, self.project, limit=1)
            if not newest:
                raise self._missing("no run yet")
            return newest[0]
        _check_name("RUN", name, self.settings)
        exact = self.queries.get_run(self.tenant, self.project, name)
        if exact is not None:
            return exact
        runs = self.queries.list_runs(self.tenant, self.project, limit=ALL_RUNS)
        found = [row for row in runs if row.run.startswith(name)]
        if not found:
            raise self._missing(f"no run {name}")
        if len(found) > 1:
            raise _ambiguous("runs", name, [row.run for row in found])
        return found[0]

    def find_task(self, run: RunRow, name: str) -> TaskRow:
        """The task of an id or of its first characters. Raises like `find_run`."""
        _check_name("TASK", name, self.settings)
        exact = self.queries.get_task(self.tenant, self.project, run.run, name)
        if exact is not None:
            return exact
        tasks = self.queries.list_tasks(self.tenant, self.project, run.run)
        found = [row for row in tasks if row.task.startswith(name)]
        if not found:
            see = f"see {advised(self.settings, 'show', short(run.run), '--all')}"
            raise Refused(Code.NOT_FOUND, f"run {run.run} has no task {name}", advice=see)
        if len(found) > 1:
            raise _ambiguous("tasks", name, [row.task for row in found])
        return found[0]

    def _missing(self, what: str) -> Refused:
        place = "--kafka" if self.on_kafka else "--data"
        return Refused(
            Code.NOT_FOUND,
            f"there is {what} of {self.tenant}/{self.project} in {self.where}",
            advice=f"see {advised(self.settings, 'ls')}; check {place}, --tenant and --project",
        )


def existing_folder(settings: Settings) -> DataFolder:
    """The data folder. Raises `Refused` when it is not there, since reading creates none, `LogLost`, and on Kafka
    `InvalidInput`."""
    no_folder(settings, "this", "leave --kafka out")
    folder = DataFolder(settings.data)
    if not folder.has_log():
        what = "has no log" if folder.root.exists() else "does not exist"
        raise Refused(
            Code.NOT_FOUND,
            f"the data folder {folder.root} {what}",
            advice="check --data and DAGBOK_DATA, or start a run",
        )
    return folder


def reading(settings: Settings) -> AbstractAsyncContextManager[Reading]:
    """Open the folder and bring its tables up to date; on Kafka open the tables, which projectors keep. Raises what
    `Projector.catch_up` raises, and `Refused`; on Kafka what opening raises."""
    return _reading_folder(settings) if settings.kafka is None else _reading_kafka(settings, settings.kafka)


@asynccontextmanager
async def _reading_kafka(settings: Settings, kafka: KafkaSettings) -> AsyncIterator[Reading]:
    url = database_url(settings)
    log = await open_kafka_log(kafka)

    async def more() -> None:
        await asyncio.sleep(LOOK_S)

    try:
        tables = await asyncio.to_thread(Tables.connect, url)
        try:
            folder, where = DataFolder(settings.data), f"the log at {kafka.bootstrap_servers}"
            queries = Queries(tables)
            yield Reading(where, True, folder, log, more, tables, queries, settings)
        finally:
            tables.close()
    finally:
        await log.close()


@asynccontextmanager
async def _reading_folder(settings: Settings) -> AsyncIterator[Reading]:
    folder = existing_folder(settings)
    log = open_log(folder)
    try:
        tables = Tables.open(folder.tables)
        try:
            projector = Projector(log, tables)
            if tables.outdated():
                say.note("the tables are those of an older dagbok: building them again from the log, once")
            await projector.catch_up()
            queries, where = Queries(tables), str(folder.root)

            async def more() -> None:
                await log.wait(EVENTS, 0, projector.position.next_offset)
                await projector.catch_up()

            yield Reading(where, False, folder, log, more, tables, queries, settings)
        finally:
            tables.close()
    finally:
        await log.close()


def _check_name(which: str, name: str, settings: Settings) -> None:
    """Every id begins with nothing: an empty variable of a shell must not mean the only run there is."""
    if not name:
        runs, tasks = advised(settings, "ls"), advised(settings, "show")
        raise InvalidInput(f"{which} is empty", code=Code.USAGE, advice=f"name it; {runs} and {tasks} have the ids")


def _ambiguous(what: str, name: str, found: list[str]) -> InvalidInput:
    some = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
    return InvalidInput(
        f"{len(found)} {what} begin with {name}: {some}", code=Code.USAGE, advice="write more of the id"
    )
