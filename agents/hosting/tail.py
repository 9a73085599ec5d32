"""Follows one partition of the log in a process that does not decide it: the runs that somebody here looks at, and no
others.

A run is followed from the first look at it, for as long as somebody watches it, and a while longer. A process that
looks at nothing reads nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator, Sequence
from typing import Final

import structlog

from dagbok.agents.hosting.one_run import STEP, Source, fold, fold_run, may_be_more, read_step
from dagbok.agents.hosting.watching import Committed, Watchers
from dagbok.agents.scheduler.owner import error_is_doubt
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, LogLost
from dagbok.events.log.port import EVENTS, StoredRecord
from dagbok.events.rule import Position
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

KEEP_S: Final = 60.0
"""A run that nobody watches is followed so long after the last look at it."""
RETRY_PAUSE_S: Final = 0.5

Joining = Generator[Position, Sequence[StoredRecord], None]
"""Gives the position behind which it has to read next, and is sent what is there."""


class Tail:
    """One position, and the runs that are followed from it. `now_s` is monotonic.

    `reads_cheaply`: reading takes microseconds, so that whoever looks at a run sees what was appended just now. Else
    `find` tells of a run that is followed what was read so far.
    """

    def __init__(
        self, source: Source, watchers: Watchers, now_s: Callable[[], float], *, reads_cheaply: bool = True
    ) -> None:
        self._source, self._log, self._partition = source, source.log, source.partition
        self._watchers, self._now_s, self._reads_cheaply = watchers, now_s, reads_cheaply
        self._state = PartitionState(source.partition)
        self._looked_s: dict[str, float] = {}
        self._wanted = asyncio.Event()
        self._failing = False

    async def run(self) -> None:
        """Follow until cancelled. Raises `DagbokError` when reading on would be wrong."""
        while True:
            await self._wanted.wait()
            try:
                await self._follow()
                self._restored()
            except (DagbokError, OSError) as error:
                if not error_is_doubt(error):
                    raise
                self._failed(error)
                await asyncio.sleep(RETRY_PAUSE_S)

    def find(self, stream: str) -> RunState | None:
        """The run as the log has it now, or none when there is none. Blocks for as long as it takes to fold the run,
        when nobody has looked at it before."""
        if stream not in self._looked_s:
            self._join(stream, fold_run(self._source, stream))
        if self._reads_cheaply:
            self._drain()
        return self._look(stream)

    async def found(self, stream: str) -> RunState | None:
        """The run as the log had it when this was called, or newer, without holding up the loop. While no broker
        answers it waits."""
        while True:
            try:
                await self._found(stream)
            except DagbokError as error:
                if error.code != Code.LOG_UNREACHABLE:
                    raise
                self._failed(error)
                await asyncio.sleep(RETRY_PAUSE_S)
            else:
                self._restored()
                return self._look(stream)

    def follows(self, stream: str) -> bool:
        """Somebody has looked at the run lately."""
        return stream in self._looked_s

    def forget(self) -> None:
        """This process decides now: what it follows it has in its own state."""
        self._state = PartitionState(self._partition)
        self._looked_s.clear()
        self._wanted.clear()

    def _look(self, stream: str) -> RunState | None:
        self._looked_s[stream] = self._now_s()
        return self._state.runs.get(stream)

    async def _found(self, stream: str) -> None:
        if stream not in self._looked_s:
            folded = await asyncio.to_thread(fold_run, self._source, stream)
            if stream not in self._looked_s:
                await self._join_without_blocking(stream, folded)
        end = (await self._log.bounds(EVENTS, self._partition)).end
        while self._next_offset < end and await self._read_on():
            pass

    def _join(self, stream: str, folded: PartitionState) -> None:
        joining = self._joining(stream, folded)
        position = next(joining, None)
        while position is not None:
            position = _send(joining, read_step(self._source, position))

    async def _join_without_blocking(self, stream: str, folded: PartitionState) -> None:
        joining = self._joining(stream, folded)
        position = next(joining, None)
        while position is not None:
            position = _send(joining, await self._read(position))

    def _joining(self, stream: str, folded: PartitionState) -> Joining:
        """Follow the run of `folded` too: both are brought to the later of their positions."""
        if self._looked_s:
            while self._next_offset < (until := folded.position.next_offset):
                self._fold(self._some((yield self._state.position)), until)
            while folded.position.next_offset < (until := self._next_offset):
                fold(self._source, folded, self._some((yield folded.position)), {stream}, until=until)
        else:
            self._state = PartitionState(self._partition, folded.position, folded.clock_ms)
        if stream not in self._looked_s:
            self._state.runs |= folded.runs
        self._looked_s[stream] = self._now_s()
        self._wanted.set()

    def _some(self, records: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
        """What was read where something was read before."""
        if not records:
            raise LogLost(f"events[{self._partition}] does not have any more what was read before")
        return records

    @property
    def _next_offset(self) -> int:
        return self._state.position.next_offset

    def _drain(self) -> None:
        while True:
            records = read_step(self._source, self._state.position)
            self._fold(records)
            if not may_be_more(records):
                return

    async def _read(self, position: Position) -> Sequence[StoredRecord]:
        return await self._log.read(EVENTS, self._partition, position.next_offset, STEP)

    async def _read_on(self) -> bool:
        """Fold what is there, once; whether there was anything."""
        records = await self._read(self._state.position)
        self._fold(records)
        return bool(records)

    def _fold(self, records: Sequence[StoredRecord], until: int = sys.maxsize) -> None:
        found: list[Committed] = []
        try:
            fold(self._source, self._state, records, self._looked_s, found, until=until)
        finally:
            for committed in found:
                self._watchers.tell(self._state.runs[committed.seal.stream or ""], (committed,))

    async def _follow(self) -> None:
        if not await self._read_on():
            await self._log.wait(EVENTS, self._partition, self._next_offset, KEEP_S)
            end = (await self._log.bounds(EVENTS, self._partition)).end
            if not await self._read_on():
                await self._check(end)
        self._leave()
        await asyncio.sleep(0)

    async def _check(self, end: int) -> None:
        """Nothing is to be read, and the log ended at `end` before."""
        if end < self._next_offset:
            raise LogLost(f"events[{self._partition}] ends at {end}, but was read up to {self._next_offset}")
        if end > self._next_offset:
            if self._source.log_refuses:
                raise LogLost(f"events[{self._partition}] has no record at offset {self._next_offset}")
            await asyncio.sleep(RETRY_PAUSE_S)

    def _leave(self) -> None:
        """Follow no longer what nobody looks at."""
        long_ago_s = self._now_s() - KEEP_S
        for stream, looked_s in tuple(self._looked_s.items()):
            if looked_s < long_ago_s and stream not in self._watchers:
                del self._looked_s[stream]
                self._state.runs.pop(stream, None)
        if not self._looked_s:
            self._wanted.clear()

    def _failed(self, error: Exception) -> None:
        write = logger.info if self._failing else logger.warning
        write("tail.read_failed", partition=self._partition, error=str(error))
        self._failing = True

    def _restored(self) -> None:
        if self._failing:
            logger.info("tail.reads_again", partition=self._partition)
        self._failing = False


def _send(joining: Joining, records: Sequence[StoredRecord]) -> Position | None:
    try:
        return joining.send(records)
    except StopIteration:
        return None
