"""Who wants to hear of a run, whichever process decides for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from dagbok.agents.scheduler.handle import Decided
from dagbok.events.commit import Seal
from dagbok.events.run.events import Event
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState


class Committed(msgspec.Struct, frozen=True, gc=False):
    """A commit of a run that is surely in the log: its seal, its offset, and its events."""

    seal: Seal
    offset: int
    events: Sequence[Event]


Watcher = Callable[[RunState, Sequence[Committed]], None]
"""Told of a run as it is behind some commits; of none when it was folded anew, and some may have been missed."""


class Watchers:
    """By stream. Several may watch one."""

    def __init__(self) -> None:
        self._by_stream: dict[str, list[Watcher]] = {}

    def __contains__(self, stream: str) -> bool:
        return stream in self._by_stream

    def add(self, stream: str, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` of the run from now on; the result ends it."""
        self._by_stream.setdefault(stream, []).append(watcher)

        def forget() -> None:
            watchers = self._by_stream.get(stream, [])
            if watcher in watchers:
                watchers.remove(watcher)
            if not watchers:
                self._by_stream.pop(stream, None)

        return forget

    def tell(self, run: RunState, committed: Sequence[Committed]) -> None:
        """What became of a run."""
        for watcher in tuple(self._by_stream.get(run.stream, ())):
            watcher(run, committed)

    def tell_all(self, find: Callable[[str], RunState | None]) -> None:
        """The runs were folded anew."""
        for stream in tuple(self._by_stream):
            run = find(stream)
            if run is not None:
                self.tell(run, ())

    def confirmed(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """Pass on what an owner confirms; of an empty batch: that it has folded anew."""
        if not self._by_stream:
            return
        if not batch:
            self.tell_all(state.run_of)
        for decided in batch:
            stream = decided.stream
            if stream is not None and stream in self._by_stream:
                commit = decided.commit
                self.tell(state.runs[stream], (Committed(commit.seal, commit.offset, decided.events),))
