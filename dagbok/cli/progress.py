"""What a person sees while a run goes on: one live line on a terminal; elsewhere a line every few seconds, as long as
something changes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from dagbok.cli import say
from dagbok.cli.advised import advised
from dagbok.cli.text import counts, duration, short
from dagbok.results import Unserved
from dagbok.settings import Settings

LIVE_EVERY_S = 0.1
PLAIN_EVERY_S = 2.0
LOOKS = 10


class Now(Protocol):
    """How a run stands: its status, tasks per status, the keys and pools that no process serves, the command that would
    serve such pools (else empty), and why nothing is decided, if so."""

    def status(self) -> str: ...

    def counts(self) -> Mapping[str, int]: ...

    def unserved(self) -> Sequence[Unserved]: ...

    def remedy(self) -> str: ...

    def trouble(self) -> str: ...


@dataclass(frozen=True)
class Standing:
    """How a run stands, for display. `others`: the tasks that are not verified; `hint`: what it waits for; `remedy`:
    the command that would give it that, if it is known."""

    run: str
    status: str
    verified: int
    total: int
    others: str
    hint: str
    remedy: str
    rate: float
    elapsed_s: float

    @property
    def advice(self) -> str:
        """The hint with its remedy."""
        return f"{self.hint}: {self.remedy}" if self.remedy else self.hint

    def line(self) -> str:
        """All of it: `3f2a… running  120 of 401 verified, 8 running  95/s  1.2 s`."""
        done = f"{self.verified} of {self.total} verified" + (f", {self.others}" if self.others else "")
        parts = [f"{self.run} {self.status}", done, f"{self.rate:.0f}/s", duration(self.elapsed_s * 1000), self.advice]
        return "  ".join(part for part in parts if part)


class Meter:
    """Looks at a run. The rate counts what was verified since this object was made."""

    def __init__(
        self, run: str, now: Now, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run, self._now, self._clock = run, now, clock
        self._resume = advised(settings, "resume", short(run))
        self._begun, self._verified = clock(), now.counts().get("verified", 0)

    def look(self) -> Standing:
        """How it stands now."""
        by_status, status = self._now.counts(), self._now.status()
        verified = by_status.get("verified", 0)
        elapsed_s = max(self._clock() - self._begun, 1e-6)
        hint, remedy = self._hint(status)
        return Standing(
            run=short(self._run),
            status=status,
            verified=verified,
            total=sum(by_status.values()),
            others=counts([pair for pair in by_status.items() if pair[0] != "verified"]),
            hint=hint,
            remedy=remedy,
            rate=(verified - self._verified) / elapsed_s,
            elapsed_s=elapsed_s,
        )

    def _hint(self, status: str) -> tuple[str, str]:
        if trouble := self._now.trouble():
            return trouble, ""
        if status == "paused":
            return f"to go on: {self._resume}", ""
        unserved = self._now.unserved()
        return ("no process serves " + ", ".join(map(str, unserved[:3])), self._now.remedy()) if unserved else ("", "")


def shown(meter: Meter, *, quiet: bool) -> AbstractContextManager[object]:
    """Show the meter while the block runs; needs a running event loop."""
    if quiet:
        return nullcontext()
    return _Live(meter) if sys.stderr.isatty() else Plain(meter)


class Plain:
    """A line when something has changed, at most every `every_s` seconds."""

    def __init__(self, meter: Meter, every_s: float = PLAIN_EVERY_S) -> None:
        self._meter, self._every_s = meter, every_s
        self._told: tuple[str, int, str, str] | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._follow())

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()

    def tell(self) -> None:
        """Write the line unless it says what the last one said."""
        now = self._meter.look()
        news = (now.status, now.verified, now.others, now.advice)
        if news != self._told:
            self._told = news
            say.note(now.line())

    async def _follow(self) -> None:
        hint = ""
        while True:
            for _ in range(LOOKS):
                await asyncio.sleep(self._every_s / LOOKS)
                # What keeps the run from going on is told at once.
                hint, before = self._meter.look().advice, hint
                if hint and hint != before:
                    break
            self.tell()


class _Live:
    def __init__(self, meter: Meter) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self._meter = meter
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.completed}/{task.total} verified", markup=False),
            TextColumn("{task.fields[rest]}", markup=False),
            console=Console(file=sys.stderr),
            auto_refresh=False,
            transient=True,
        )
        self._bar = self._progress.add_task("", total=None, rest="")
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._progress.start()
        self._task = asyncio.get_running_loop().create_task(self._follow())

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
        self._progress.stop()

    async def _follow(self) -> None:
        remedy = ""
        while True:
            now = self._meter.look()
            if now.remedy and now.remedy != remedy:
                # A command that is cut off at the edge of the terminal is of no use: it stands above, whole.
                self._progress.console.print(now.advice, markup=False, highlight=False, soft_wrap=True)
                remedy = now.remedy
            rest = [f"{now.rate:.0f}/s", duration(now.elapsed_s * 1000), now.hint, now.others]
            self._progress.update(
                self._bar,
                description=now.run if now.status == "running" else f"{now.run} {now.status}",
                completed=now.verified,
                total=now.total,
                rest="  ".join(part for part in rest if part),
                refresh=True,
            )
            await asyncio.sleep(LIVE_EVERY_S)
