"""The events of a run in order: those that are there, from the tables or the log, and what follows, as it is
confirmed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

from dagbok.agents.hosting.watching import Committed
from dagbok.listing import RunEvent, events_of_commit
from dagbok.projections.task_graph.state import RunState

First = Callable[[Coroutine[object, object, bool]], Awaitable[bool]]

AHEAD = 1_000
"""So many commits wait for a slow reader in memory; he reads the others where all of them are stored."""

Stored = Callable[[int], Awaitable[Sequence[RunEvent]]]
"""Gives the next events that are stored and have a number above this one, perhaps with some below it. Empty only at the
end of what is confirmed."""


class EventFeed:
    """Behind `after`. `told` is called with what is confirmed; `read` gives it all in order."""

    def __init__(self, run: RunState, after: int, settled: Sequence[str], stored: Stored) -> None:
        self._run = run.run
        self._after, self._settled, self._stored = after, settled, stored
        self._ahead: deque[Committed] = deque(maxlen=AHEAD)
        self._changed = asyncio.Event()
        self._last, self._over = run.stream_seq, run.status in settled

    def told(self, run: RunState, committed: Sequence[Committed]) -> None:
        """Something of the run was confirmed, or folded anew."""
        self._ahead.extend(committed)
        self._last, self._over = run.stream_seq, run.status in self._settled
        self._changed.set()

    async def read(self, first: First) -> AsyncIterator[RunEvent]:
        """Every event once, until the run is settled and all were read. `first` waits, unless the host fails."""
        while True:
            self._changed.clear()
            async for event in self._present():
                yield event
            if self._over and self._after >= self._last:
                return
            if not self._changed.is_set():
                await first(self._changed.wait())

    async def _present(self) -> AsyncIterator[RunEvent]:
        while self._after < self._last:
            if self._ahead and self._ahead[0].seal.stream_seq <= self._after + 1:
                events = self._next()
            elif not (events := await self._stored(self._after)):
                return
            for event in events:
                if event.seq > self._after:
                    self._after = event.seq
                    yield event

    def _next(self) -> Sequence[RunEvent]:
        committed = self._ahead.popleft()
        if committed.seal.stream_seq + committed.seal.count <= self._after + 1:
            return ()
        return events_of_commit(self._run, committed.seal, committed.offset, committed.events)
