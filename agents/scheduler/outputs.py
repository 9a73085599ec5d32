"""Everything that leaves a scheduler, derived from confirmed commits: dispatches, timers, answers, and news for
watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from dagbok.agents.queue import Queue
from dagbok.agents.scheduler.answers import answer_of
from dagbok.agents.scheduler.chronicle import tell
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.scheduler.timers import Timers
from dagbok.events.envelope import Reply
from dagbok.projections.partition import PartitionState

Watcher = Callable[[PartitionState, Sequence[Decided]], None]
"""Told of each confirmed batch; of an empty one after a fold."""


class SchedulerOutputs:
    """The outputs of one owner. `changed` is set whenever there may be something new to wait for."""

    def __init__(self, queue: Queue, dispatcher: Dispatcher, timers: Timers) -> None:
        self._queue, self._dispatcher, self._timers = queue, dispatcher, timers
        self._watchers: list[Watcher] = []
        self._pending_until = 0
        self.changed = asyncio.Event()

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` of every batch from now on; the result ends it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def rebuild(self, state: PartitionState, pending_until: int) -> None:
        """The state was folded anew. Nothing is dispatched before the commands that were waiting are decided: many of
        them end the very attempts that would be sent."""
        self._pending_until = pending_until
        self._dispatcher.rebuild(state)
        self._timers.rebuild(state)
        self._finish(state, ())

    def confirmed(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """These commits are surely in the log."""
        replies: dict[str, list[Reply]] = {}
        for decided in batch:
            self._dispatcher.confirmed(state, decided)
            self._timers.confirmed(state, decided)
            tell(decided)
            if decided.reply_to is not None:
                replies.setdefault(decided.reply_to, []).append(answer_of(state, decided))
        for address, answers in replies.items():
            self._queue.reply(address, answers)
        self._finish(state, batch)

    def _finish(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        if state.position.last_command_offset + 1 >= self._pending_until:
            self._dispatcher.send(state)
        self.changed.set()
        for watcher in tuple(self._watchers):
            watcher(state, batch)
