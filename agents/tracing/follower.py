"""Follows the confirmed commits of a partition and sends the spans that end with them.

It holds a position and no backlog. A batch that continues the position is taken from memory; when the receiver is slow
the position falls behind, and what it missed is read from the log later. So the owner never waits, and memory stays
bounded, whatever the receiver does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

import structlog

from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.tracing.fold import SpanFold
from dagbok.agents.tracing.sink import SpanSink
from dagbok.agents.tracing.span import Span
from dagbok.events.body import decode_body
from dagbok.events.commit import Commit, Seal, split_value, value_hash
from dagbok.events.errors import LogLost
from dagbok.events.log.port import EVENTS, Log
from dagbok.events.rule import GENESIS, Position, is_effective
from dagbok.events.run.events import Event
from dagbok.events.traceparent import TRACEPARENT
from dagbok.projections.partition import PartitionState
from dagbok.projections.reading import read_effective
from dagbok.projections.task_graph.state import CLOSED_RUN

logger = structlog.get_logger(__name__)

RESEND_MS = 60_000
"""Spans that ended so shortly before a takeover are sent again: they may have been lost with the process before. They
are the same spans, with the same ids."""
MAX_PENDING = 1_024
READ_COMMITS = 64
TAKEN_COMMITS = 64
YIELD_SPANS = 64
"""As many at once: the loop is the owner's."""


class TraceFollower:
    """One for each owner of a partition: `confirmed` is told of its batches, `run` does the work."""

    def __init__(self, log: Log, partition: int, fold: SpanFold, sink: SpanSink) -> None:
        self._log, self._partition, self._fold, self._sink = log, partition, fold, sink
        self._pending: deque[Decided] = deque()
        self._begin: _Beginning | None = None
        self._begun = False
        self._position = GENESIS
        self._end = 0
        self._state: PartitionState | None = None
        self._moved = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._caught_up.set()
        self._stopped = False

    def confirmed(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """A watcher of the owner's outputs: notes what there is to follow, and returns at once."""
        if self._stopped:
            return
        self._state = state
        if self._begin is None:
            self._begin = _Beginning.of(state)
        self._end = state.position.next_offset
        # With a gap the rest comes from the log; so it does when there is too much.
        if len(self._pending) + len(batch) > MAX_PENDING:
            self._pending.clear()
        self._pending.extend(batch)
        self._caught_up.clear()
        self._moved.set()

    async def run(self) -> None:
        """Follow until cancelled. Whatever goes wrong is logged and ends the tracing alone."""
        try:
            while True:
                await self._moved.wait()
                self._moved.clear()
                await self._follow()
                self._caught_up.set()
        except Exception as error:
            logger.error("tracing.stopped", partition=self._partition, error=str(error), exc_info=error)
            self._stopped = True
            self._pending.clear()
            self._caught_up.set()

    async def caught_up(self) -> None:
        """Wait until the spans of everything confirmed so far are handed over."""
        await self._caught_up.wait()

    async def _follow(self) -> None:
        if not self._begun and self._begin is not None:
            await self._load(self._begin)
            self._position, self._begun = self._begin.position, True
        while self._position.next_offset < self._end:
            if not await self._take_from_memory() and not await self._read():
                return
            await asyncio.sleep(0)  # the owner goes first

    async def _take_from_memory(self) -> bool:
        """Take in some of what continues the position; what stands before it has been read from the log. False: the
        next commit is not there."""
        pending, taken = self._pending, 0
        while pending and taken < TAKEN_COMMITS:
            commit = pending[0].commit
            if commit.offset < self._position.next_offset:
                pending.popleft()
            elif is_effective(self._position, self._partition, commit.offset, commit.seal):
                await self._apply(commit, pending.popleft().events)
                taken += 1
            else:
                break
        return taken > 0

    async def _read(self) -> bool:
        """Take in the next commits of the log. False: there are none."""
        before = self._position
        position, commits = await read_effective(self._log, self._partition, before, READ_COMMITS)
        for commit in commits:
            if self._fold.concerns(commit.seal):
                await self._apply(commit, _decoded(commit))
        self._position = position
        return position != before

    async def _apply(self, commit: Commit, events: Sequence[Event]) -> None:
        if self._fold.lacks(commit.seal, events):
            await self._load_again(commit.seal)
        await self._send(self._fold.apply(commit.seal, events, traceparent=commit.traceparent))
        self._position = self._position.applied(commit.offset, commit.seal, commit.hash)

    async def _send(self, spans: Iterable[Span]) -> None:
        for number, span in enumerate(spans, 1):
            while not self._sink.put(span):
                await self._sink.room()
            if number % YIELD_SPANS == 0:
                await asyncio.sleep(0)  # the end of a run may end a hundred thousand spans

    async def _load_again(self, seal: Seal) -> None:
        """A run that was closed goes on: fold it from its start, up to here."""
        stream = seal.stream or ""
        run = None if self._state is None else self._state.run_of(stream)
        if run is not None:
            await self._load(_Beginning(self._position, {stream: run.started_offset}, None))

    async def _load(self, begin: _Beginning) -> None:
        """Fold the named runs from their starts to where one stands."""
        if not begin.starts:
            return
        # Known to count, since the state was folded from it: so its own position is one of this log.
        position, first = await self._commit_at(min(begin.starts.values()))
        commits = [first]
        while True:
            for commit in commits:
                seal = commit.seal
                if commit.offset < begin.position.next_offset and seal.stream in begin.starts:
                    spans = self._fold.apply(
                        seal, _decoded(commit), traceparent=commit.traceparent, keep_failed=True
                    )
                    wanted = begin.resend_from_ms is not None and seal.now_ms >= begin.resend_from_ms
                    await self._send(span for span in spans if wanted)
            if position.next_offset >= begin.position.next_offset:
                return
            before = position
            position, commits = await read_effective(self._log, self._partition, position, READ_COMMITS)
            if position == before:
                raise LogLost(f"events[{self._partition}] ends before {begin.position.next_offset}")
            await asyncio.sleep(0)

    async def _commit_at(self, offset: int) -> tuple[Position, Commit]:
        records = await self._log.read(EVENTS, self._partition, offset, 1)
        parts = split_value(records[0].value) if records and records[0].offset == offset else None
        if parts is None:
            raise LogLost(f"events[{self._partition}] has no commit at {offset}")
        seal, body = parts
        hash, traceparent = value_hash(records[0].value), records[0].headers.get(TRACEPARENT)
        return GENESIS.applied(offset, seal, hash), Commit(offset, hash, seal, body, traceparent)


class _Beginning:
    """Where to follow from, and which runs to fold before: their streams, and where they started."""

    def __init__(self, position: Position, starts: dict[str, int], resend_from_ms: int | None) -> None:
        self.position, self.starts, self.resend_from_ms = position, starts, resend_from_ms

    @classmethod
    def of(cls, state: PartitionState) -> _Beginning:
        """Of an owner that has just folded `state`: the runs that are open, or were shortly before."""
        since_ms = state.clock_ms - RESEND_MS
        starts = {
            stream: run.started_offset
            for stream, run in state.runs.items()
            if run.exists and (run.status not in CLOSED_RUN or run.closed_ms >= since_ms)
        }
        return cls(state.position, starts, since_ms)


def _decoded(commit: Commit) -> list[Event]:
    return decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
