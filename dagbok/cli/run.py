"""`dagbok run FILE`: the tasks of a file, from their start to their end, over as many starts of this command as it
takes."""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypedDict

from dagbok.agents.workers.definitions import Worker
from dagbok.cli import say
from dagbok.cli.choose import choose, explained
from dagbok.cli.ending import Ended, tell
from dagbok.cli.entry import Entry, call_main, main_app
from dagbok.cli.interrupts import Interrupted, interruptible, leave_threads
from dagbok.cli.limits import higher, parse
from dagbok.cli.module_file import as_file, load_all, load_file, pool_of
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.outputs import export
from dagbok.cli.progress import Meter, shown
from dagbok.cli.quiet import only_json, quiet_logs
from dagbok.cli.unserved import how_to_serve
from dagbok.client import Dagbok
from dagbok.events.budgets import Limits
from dagbok.events.errors import Refused
from dagbok.events.ids import run_id
from dagbok.events.when import When
from dagbok.settings import Settings

POOL = "pool '"
"""How `Dagbok.unserved` begins the name of a pool."""


class Whose(TypedDict):
    """The arguments that say whose run is meant."""

    tenant: str
    project: str


def run_file(
    file: Path,
    options: Sequence[str],
    imports: Sequence[str],
    *,
    new: bool,
    limits: Sequence[str],
    quiet: bool,
    place: Place | None,
    output: Output | None,
) -> int:
    """Load the file, run its tasks, tell how they ended; the exit status."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    wanted = parse(limits)
    with only_json(how.json):
        modules = load_all([as_file(file), *imports])
        entry = call_main(modules[0], options, str(file))
    if entry is None:
        return 0
    kind = Session
    if settings.kafka is not None:
        from dagbok.cli.run_kafka import KafkaSession

        kind = KafkaSession
    session = kind(entry, modules, settings, new=new, limits=wanted, quiet=quiet or how.json)
    try:
        return asyncio.run(interruptible(_run_and_tell(session, quiet=quiet, as_json=how.json)))
    except Interrupted as interrupted:
        say.note("interrupted: the same command goes on where it was")
        leave_threads(interrupted.status)
        return interrupted.status


def help_on_file(command: str, file: str) -> None:
    """Print the options of `main`. Raises like `load_file`."""
    main_app(load_file(Path(file)), file, command).help_print([])


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
                with shown(Meter(run, _Now(dagbok, run, self)), quiet=self.quiet):
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
            raise explained(error, self.entry, run_id(whose.tenant, whose.project, key)) from error

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
            near = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
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

    def unserved(self) -> Sequence[str]:
        return self._dagbok.unserved(self._run, **self._whose)

    def remedy(self) -> str:
        pools = [each[len(POOL) : -1] for each in self.unserved() if each.startswith(POOL)]
        if pools != self._remedy[0]:  # files are looked for: once, not with every look
            mine, file = pool_of(self._session.entry.file), self._session.entry.file
            self._remedy = pools, how_to_serve(pools, self._session.settings.data, [mine], known=[file])
        return self._remedy[1]

    def trouble(self) -> str:
        seen = self._dagbok.host.owner_seen()
        return str(seen) if seen.state == "silent" and not self._dagbok.host.owns else ""


async def _run_and_tell(session: Session, *, quiet: bool, as_json: bool) -> int:
    with only_json(as_json):
        ended = await session.follow()
    return await tell(ended, session.settings, quiet=quiet, as_json=as_json)
