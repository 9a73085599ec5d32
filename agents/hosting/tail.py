"""Follows the log in a process that does not decide: the runs that somebody here looks at, and no others.

A run is followed from the first look at it, for as long as somebody watches it, and a while longer. A process that
looks at nothing reads nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Final

import structlog

from dagbok.agents.hosting.folder import PARTITION, DataFolder
from dagbok.agents.hosting.one_run import STEP, fold_run, step
from dagbok.agents.hosting.watching import Committed, Watchers
from dagbok.agents.scheduler.owner import error_is_doubt
from dagbok.events.errors import DagbokError, LogLost
from dagbok.events.log.port import EVENTS, Log
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

KEEP_S: Final = 60.0
"""A run that nobody watches is followed so long after the last look at it."""
RETRY_PAUSE_S: Final = 0.5


class Tail:
    """One position, and the runs that are followed from it. `now_s` is monotonic."""

    def __init__(self, folder: DataFolder, log: Log, watchers: Watchers, now_s: Callable[[], float]) -> None:
        self._folder, self._log, self._watchers, self._now_s = folder, log, watchers, now_s
        self._state = PartitionState(PARTITION)
        self._looked_s: dict[str, float] = {}
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled. Raises `DagbokError` when reading on would be wrong."""
        while True:
            await self._wanted.wait()
            try:
                await self._follow()
            except (DagbokError, OSError) as error:
                if not error_is_doubt(error):
                    raise
                logger.warning("tail.read_failed", error=str(error))
                await asyncio.sleep(RETRY_PAUSE_S)

    def find(self, stream: str) -> RunState | None:
        """The run as the log has it now, or none when there is none. Blocks for as long as it takes to fold the run,
        when nobody has looked at it before."""
        if stream not in self._looked_s:
            self._join(stream, fold_run(self._folder, self._log, stream))
        self._drain()
        return self._look(stream)

    async def found(self, stream: str) -> RunState | None:
        """The same, without holding up the loop."""
        if stream not in self._looked_s:
            folded = await asyncio.to_thread(fold_run, self._folder, self._log, stream)
            if stream not in self._looked_s:
                self._join(stream, folded)
        return self.find(stream)

    def forget(self) -> None:
        """This process decides now: what it follows it has in its own state."""
        self._state = PartitionState(PARTITION)
        self._looked_s.clear()
        self._wanted.clear()

    def _look(self, stream: str) -> RunState | None:
        self._looked_s[stream] = self._now_s()
        return self._state.runs.get(stream)

    def _join(self, stream: str, folded: PartitionState) -> None:
        """Follow the run of `folded` too: both are brought to the later of their positions."""
        if self._looked_s:
            while self._next_offset < (until := folded.position.next_offset):
                self._step(until)
            while folded.position.next_offset < (until := self._next_offset):
                step(self._log, folded, {stream}, until=until)
        else:
            self._state = PartitionState(PARTITION, folded.position, folded.clock_ms)
        self._state.runs |= folded.runs
        self._looked_s[stream] = self._now_s()
        self._wanted.set()

    @property
    def _next_offset(self) -> int:
        return self._state.position.next_offset

    def _drain(self) -> None:
        while self._step() == STEP:
            pass

    def _step(self, until: int = sys.maxsize) -> int:
        found: list[Committed] = []
        number = step(self._log, self._state, self._looked_s, found, until=until)
        for committed in found:
            self._watchers.tell(self._state.runs[committed.seal.stream or ""], (committed,))
        return number

    async def _follow(self) -> None:
        if not self._step():
            await self._log.wait(EVENTS, PARTITION, self._next_offset, KEEP_S)
            end = (await self._log.bounds(EVENTS, PARTITION)).end
            if not self._step() and end > self._next_offset:
                raise LogLost(f"events[{PARTITION}] has no record at offset {self._next_offset}")
        self._leave()
        await asyncio.sleep(0)

    def _leave(self) -> None:
        """Follow no longer what nobody looks at."""
        long_ago_s = self._now_s() - KEEP_S
        for stream, looked_s in tuple(self._looked_s.items()):
            if looked_s < long_ago_s and stream not in self._watchers:
                del self._looked_s[stream]
                self._state.runs.pop(stream, None)
        if not self._looked_s:
            self._wanted.clear()
