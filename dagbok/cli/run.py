"""`dagbok run FILE`: the tasks of a file, from their start to their end, over as many starts of this command as it
takes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TypedDict

from dagbok.cli import say
from dagbok.cli.ending import Ended, tell
from dagbok.cli.entry import Entry, call_main, main_app
from dagbok.cli.interrupts import Interrupted, interruptible, leave_threads
from dagbok.cli.module_file import load_all, load_file, pool_of
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.outputs import export
from dagbok.cli.progress import Meter, shown
from dagbok.cli.quiet import quiet_logs
from dagbok.client import Dagbok
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.ids import run_id
from dagbok.settings import Settings

FINISHED = ("succeeded", "failed", "cancelled")


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
    quiet: bool,
    place: Place | None,
    output: Output | None,
) -> int:
    """Load the file, run its tasks, tell how they ended; the exit status."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    with _only_json(how.json):
        modules = load_all([_as_file(file), *imports])
        entry = call_main(modules[0], options, str(file))
    if entry is None:
        return 0
    session = Session(entry, modules, settings, new=new, quiet=quiet or how.json)
    try:
        return asyncio.run(interruptible(_run_and_tell(session, quiet=quiet, as_json=how.json)))
    except Interrupted as interrupted:
        say.note("interrupted: the same command goes on where it was")
        leave_threads(interrupted.status)
        return interrupted.status


def help_on_file(file: str) -> None:
    """Print the options of `main`. Raises like `load_file`."""
    main_app(load_file(Path(file)), file).help_print([])


@dataclass(frozen=True)
class Session:
    """One run of one file by this process."""

    entry: Entry
    modules: Sequence[ModuleType]
    settings: Settings
    new: bool
    quiet: bool

    async def follow(self) -> Ended:
        """Start the run or go on with it, and wait for its end. Raises what `Dagbok.embedded` and `start` raise."""
        async with Dagbok.embedded(
            self.settings.data, *self.modules, pool=pool_of(self.entry.file), user=self.settings.user
        ) as dagbok:
            run, resumed = await self._begin(dagbok)
            begun = time.monotonic()
            if not self.quiet:
                say.note(f"{'going on with' if resumed else 'started'} run {run}")
            try:
                with shown(Meter(run, _Now(dagbok, run, self._whose)), quiet=self.quiet):
                    result = await dagbok.wait(run, **self._whose)
            except asyncio.CancelledError:
                say.note("handing back what runs; once more to quit at once")
                raise
            elapsed_s = time.monotonic() - begun
            files = await asyncio.to_thread(export, result, self.settings.data)
        return Ended(result, resumed, elapsed_s, files)

    async def _begin(self, dagbok: Dagbok) -> tuple[str, bool]:
        key, known = self._choose(dagbok)
        try:
            run = await dagbok.start(self.entry.tasks, key=key, **self._whose)
        except Refused as error:
            if error.code is not Code.CONFIG_MISMATCH:
                raise
            raise Refused(
                error.code,
                f"{error.message}: the file is not what it was when the unfinished run began",
                advice="use --new to begin another run, or bring the file back to what it was",
            ) from error
        return run, known

    def _choose(self, dagbok: Dagbok) -> tuple[str, bool]:
        """The key of the first run that is absent or unfinished (with `new`: absent), and whether it is there."""
        for number in count():
            key = self.entry.key(self.settings.data, number)
            status = dagbok.status(run_id(self.settings.tenant, self.settings.project, key), **self._whose)
            if status is None or (status not in FINISHED and not self.new):
                return key, status is not None
        raise AssertionError("count() has no end")

    @property
    def _whose(self) -> Whose:
        return {"tenant": self.settings.tenant, "project": self.settings.project}


class _Now:
    """See `progress.Now`."""

    def __init__(self, dagbok: Dagbok, run: str, whose: Whose) -> None:
        self._dagbok, self._run, self._whose = dagbok, run, whose

    def status(self) -> str:
        return self._dagbok.status(self._run, **self._whose) or "unknown"

    def counts(self) -> Mapping[str, int]:
        return self._dagbok.progress(self._run, **self._whose)

    def unserved(self) -> Sequence[str]:
        return self._dagbok.unserved(self._run, **self._whose)


async def _run_and_tell(session: Session, *, quiet: bool, as_json: bool) -> int:
    with _only_json(as_json):
        ended = await session.follow()
    return await tell(ended, session.settings, quiet=quiet, as_json=as_json)


def _only_json(wanted: bool) -> AbstractContextManager[object]:
    """What workers print would stand in the middle of the JSON: it goes to standard error then."""
    return redirect_stdout(sys.stderr) if wanted else nullcontext()


def _as_file(file: Path) -> str:
    """A path that is not mistaken for a dotted name."""
    return str(file.expanduser().absolute())
