"""What a person sees while a run goes on: one live line on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from dagbok.cli import say
from dagbok.cli.text import counts, duration, short

LIVE_EVERY_S = 0.1
PLAIN_EVERY_S = 2.0


class Now(Protocol):
    """How a run stands: its status, tasks per status, and the keys that no process serves."""

    def status(self) -> str: ...

    def counts(self) -> Mapping[str, int]: ...

    def unserved(self) -> Sequence[str]: ...


class Meter:
    """Makes the line. The rate counts what was verified since this process began."""

    def __init__(self, run: str, now: Now, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._now, self._clock = run, now, clock
        self._begun, self._verified = clock(), now.counts().get("verified", 0)

    def line(self) -> str:
        """`3f2a… running  120 of 401 verified, 8 running, …  95/s  1.2 s`"""
        by_status = self._now.counts()
        total, verified = sum(by_status.values()), by_status.get("verified", 0)
        others = counts([pair for pair in by_status.items() if pair[0] != "verified"])
        elapsed_s = max(self._clock() - self._begun, 1e-6)
        parts = [
            f"{short(self._run)} {self._now.status()}",
            f"{verified} of {total} verified" + (f", {others}" if others else ""),
            f"{(verified - self._verified) / elapsed_s:.0f}/s",
            duration(elapsed_s * 1000),
        ]
        unserved = self._now.unserved()
        if unserved:
            parts.append("no process serves " + ", ".join(unserved[:3]))
        if self._now.status() == "paused":
            parts.append(f"to go on: dagbok resume {short(self._run)}")
        return "  ".join(parts)


def shown(meter: Meter, *, quiet: bool) -> AbstractContextManager[object]:
    """Show the meter while the block runs (an event loop must be running)."""
    if quiet:
        return nullcontext()
    return _Live(meter) if sys.stderr.isatty() else _Plain(meter)


class _Plain:
    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._tell())

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(PLAIN_EVERY_S)
            say.note(self._meter.line())


class _Live:
    def __init__(self, meter: Meter) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        self._meter = meter
        self._spinner = Spinner("dots", meter.line())
        console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        self._live = Live(self._spinner, console=console, auto_refresh=False, transient=True)
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._live.start()
        self._task = asyncio.get_running_loop().create_task(self._tell())

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
        self._live.stop()

    async def _tell(self) -> None:
        from rich.text import Text

        while True:
            self._spinner.update(text=Text(self._meter.line(), overflow="ellipsis", no_wrap=True))
            self._live.refresh()
            await asyncio.sleep(LIVE_EVERY_S)
