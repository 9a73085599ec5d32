"""One run of one file by this process, in a data folder: from its start, or where it was, to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TypedDict

from dagbok.agents.workers.definitions import Worker
from dagbok.cli import say
from dagbok.cli.choose import choose, explained
from dagbok.cli.ending import Ended
from dagbok.cli.entry import Entry
from dagbok.cli.limits import higher
from dagbok.cli.module_file import pool_of
from dagbok.cli.outputs import export
from dagbok.cli.progress import Meter, shown
from dagbok.cli.unserved import how_to_serve
from dagbok.client import Dagbok
from dagbok.events.budgets import Limits
from dagbok.events.errors import Refused
from dagbok.events.ids import run_id
from dagbok.events.near import did_you_mean
from dagbok.events.when import When
from dagbok.results import Unserved
from dagbok.settings import Settings


class Whose(TypedDict):
    """The arguments that say whose run is meant."""

    tenant: str
    project: str


@dataclass(frozen=True)
class Session:
    """One run of one file by this process."""

    entry: Entry
    modules: Sequence[ModuleType]
    settings: Settings
    new: bool
    limits: Limits | None
    quiet: bool

    async def follow(self) -> Ended:
        """Start the run or go on with it, and wait for its end. Raises what `Dagbok.embedded` and `start` raise."""
        # Before the workers of this process can finish the run that is meant.
        key, resumed = await choose(self.settings, self.entry, new=self.new)
        async with Dagbok.embedded(
            self.settings.data,
            *self.modules,
            pool=pool_of(self.entry.file),
            user=self.settings.user,
            tenant_limit=self.settings.tenant_limit,
        ) as dagbok:
            run = await self._begin(dagbok, key)
            begun = time.monotonic()
            if not self.quiet:
                say.note(f"{'going on with' if resumed else 'started'} run {run}")
                self._say_unknown()
                await self._say_higher(dagbok, run)
                if not dagbok.host.owns:
                    say.note(f"{dagbok.host.owner_seen()}: working with it")
            try:
                with shown(Meter(run, _Now(dagbok, run, self), self.settings), quiet=self.quiet):
                    result = await dagbok.wait(run, **self.whose)
            except asyncio.CancelledError:
                say.note("handing back what runs; once more to quit at once")
                raise
            elapsed_s = time.monotonic() - begun
            files = await asyncio.to_thread(export, result, self.settings.data, several=self.several)
        return Ended(result, resumed, elapsed_s, files, self.several)

    @property
    def several(self) -> bool:
        """Whether the run has several roots: tasks that no other depends on."""
        needed = {
            edge.task if isinstance(edge, When) else edge for task in self.entry.tasks for edge in task.depends_on
        }
        return len([task for task in self.entry.tasks if task.id not in needed]) > 1

    async def _begin(self, dagbok: Dagbok, key: str) -> str:
        try:
            return await dagbok.start(self.entry.tasks, key=key, limits=self.limits, **self.whose)
        except Refused as error:
            whose = self.settings
            raise explained(error, self.entry, run_id(whose.tenant, whose.project, key), whose) from error

    async def _say_higher(self, dagbok: Dagbok, run: str) -> None:
        """A run that goes on may have been given more than the command says now."""
        if self.limits is not None:
            for line in higher((await dagbok.result(run, **self.whose)).limits, self.limits):
                say.note(line)

    def _say_unknown(self) -> None:
        """A key that is written wrongly is no error, since another process may know it; but nobody should have to wait
        to see it."""
        known = {value.key for module in self.modules for value in vars(module).values() if isinstance(value, Worker)}
        for key in sorted({task.worker for task in self.entry.tasks if task.pool is None} - known):
            hint = did_you_mean(key, sorted(known))
            say.note(f"no worker {key!r} in FILE or --import: its task waits for a process that has it{hint}")

    @property
    def whose(self) -> Whose:
        return {"tenant": self.settings.tenant, "project": self.settings.project}


class _Now:
    """See `progress.Now`."""

    def __init__(self, dagbok: Dagbok, run: str, session: Session) -> None:
        self._dagbok, self._run, self._session, self._whose = dagbok, run, session, session.whose
        self._remedy: tuple[list[str], str] = ([], "")

    def status(self) -> str:
        return self._dagbok.status(self._run, **self._whose) or "unknown"

    def counts(self) -> Mapping[str, int]:
        return self._dagbok.progress(self._run, **self._whose)

    def unserved(self) -> Sequence[Unserved]:
        return self._dagbok.unserved(self._run, **self._whose)

    def remedy(self) -> str:
        pools = [each.name for each in self.unserved() if each.kind == "pool"]
        if pools != self._remedy[0]:  # files are looked for: once, not with every look
            mine, file = pool_of(self._session.entry.file), self._session.entry.file
            self._remedy = pools, how_to_serve(pools, self._session.settings, [mine], known=[file])
        return self._remedy[1]

    def trouble(self) -> str:
        seen = self._dagbok.host.owner_seen()
        return str(seen) if seen.state == "silent" and not self._dagbok.host.owns else ""
