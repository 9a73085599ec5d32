"""`dagbok run FILE` and `dagbok submit FILE` on Kafka: this process works along, and schedulers decide."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from types import ModuleType

from dagbok.cli import say
from dagbok.cli.asking import with_a_word
from dagbok.cli.choose import explained
from dagbok.cli.cluster import with_kafka
from dagbok.cli.ending import Ended
from dagbok.cli.entry import Entry
from dagbok.cli.outputs import export
from dagbok.cli.places import artifacts_place
from dagbok.cli.progress import Meter, shown
from dagbok.cli.run_session import Session
from dagbok.client import Dagbok
from dagbok.events.budgets import Limits
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.ids import run_id
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.projections.task_graph.state import CLOSED_RUN
from dagbok.results import Unserved
from dagbok.settings import Settings

POOL = "default"
"""On Kafka pools are what a deployment serves; that of a path would mean nothing on another machine."""


class KafkaSession(Session):
    """One run of one file by this process, which serves the pool `default` with what the file declares."""

    async def follow(self) -> Ended:
        """Start the run or go on with it, and wait for its end. Raises what `Dagbok.connect` and `start` raise."""
        async with connected(self.settings, self.modules, serve=True) as dagbok:
            run, resumed = await begin(dagbok, self.settings, self.entry, new=self.new, limits=self.limits)
            begun = time.monotonic()
            if not self.quiet:
                say.note(f"{'going on with' if resumed else 'started'} run {run}")
                await self._say_higher(dagbok, run)
            try:
                with shown(Meter(run, _Now(dagbok, run, self.settings), self.settings), quiet=self.quiet):
                    result = await dagbok.wait(run, **self.whose)
            except asyncio.CancelledError:
                say.note("handing back what runs; once more to quit at once")
                raise
            elapsed_s = time.monotonic() - begun
            files = await asyncio.to_thread(export, result, self.settings.data, several=self.several)
        return Ended(result, resumed, elapsed_s, files, self.several)


@asynccontextmanager
async def connected(settings: Settings, modules: Sequence[ModuleType], *, serve: bool) -> AsyncIterator[Dagbok]:
    """A client on the cluster of the settings. Makes the topics of the pool when it is to be served and they are
    missing. Raises what `Dagbok.connect` raises."""
    kafka = settings.kafka or KafkaSettings()
    if serve:
        await with_kafka("dagbok.agents.kafka.lane_topics").ensure_lane_topics(kafka, [POOL])
    async with Dagbok.connect(
        *modules,
        kafka=kafka,
        artifacts=artifacts_place(settings),
        database=settings.database,
        pool=POOL,
        user=settings.user,
        serve=serve,
        session_s=settings.session_s,
    ) as dagbok:
        yield dagbok


async def begin(
    dagbok: Dagbok, settings: Settings, entry: Entry, *, new: bool, limits: Limits | None
) -> tuple[str, bool]:
    """Start the first run of a file that is not there or unfinished (with `new`: not there); its id, and whether it was
    there. Raises what `Dagbok.start` raises."""
    prefix = Path("/") / (settings.kafka or KafkaSettings()).prefix  # the same wherever it is given
    for number in count():
        key = entry.key(prefix, number)
        run = run_id(settings.tenant, settings.project, key)
        status = await _status(dagbok, settings, run)
        if status is not None and (new or status in CLOSED_RUN):
            continue
        starting = dagbok.start(entry.tasks, key=key, limits=limits, tenant=settings.tenant, project=settings.project)
        try:
            return await with_a_word(starting, settings), status is not None
        except Refused as error:
            raise explained(error, entry, run, settings) from error
    raise AssertionError("count() has no end")


async def _status(dagbok: Dagbok, settings: Settings, run: str) -> str | None:
    try:
        return (await dagbok.result(run, tenant=settings.tenant, project=settings.project)).status
    except Refused as error:
        if error.code is not Code.NOT_FOUND:
            raise
        return None


async def submit_to_kafka(
    settings: Settings, modules: Sequence[ModuleType], entry: Entry, *, new: bool, limits: Limits | None
) -> tuple[str, bool]:
    """Start the run that `dagbok run` would, for whoever serves the pool `default`; as `begin`."""
    async with connected(settings, modules, serve=False) as dagbok:
        return await begin(dagbok, settings, entry, new=new, limits=limits)


class _Now:
    """See `progress.Now`. Who serves what, and who decides, is not known here."""

    def __init__(self, dagbok: Dagbok, run: str, settings: Settings) -> None:
        self._dagbok, self._run = dagbok, run
        self._tenant, self._project = settings.tenant, settings.project

    def status(self) -> str:
        return self._dagbok.status(self._run, tenant=self._tenant, project=self._project) or "unknown"

    def counts(self) -> Mapping[str, int]:
        return self._dagbok.progress(self._run, tenant=self._tenant, project=self._project)

    def unserved(self) -> Sequence[Unserved]:
        return self._dagbok.unserved(self._run, tenant=self._tenant, project=self._project)

    def remedy(self) -> str:
        return ""

    def trouble(self) -> str:
        return ""
