"""What the log tells of the attempts before, for the dispatches of those that follow."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from dagbok.events.log.port import Log
from dagbok.events.places import events_at
from dagbok.events.run import events as e
from dagbok.projections.task_graph.state import ProblemRef, TaskNode

KEPT: Final = 1_024
"""What is told of so many events stays at hand: more than the windows of two lanes ask for at once."""

TOLD: Final = (
    e.AttemptFailed,
    e.AttemptLost,
    e.VerdictRecorded,
    e.TaskBlocked,
    e.DecompositionRefused,
    e.TaskUnblocked,
    e.TaskRetried,
)

Place = tuple[int, int]


class Problems:
    """Of one partition. `far`: each read of this log asks another machine, so nothing is read where that would hold up
    the loop: what was confirmed lately is kept, and the rest is there when `read` has brought it. A log nearby is read
    when it is asked."""

    def __init__(self, log: Log, *, far: bool) -> None:
        self._log, self._far = log, far
        self._kept: OrderedDict[Place, e.Event] = OrderedDict()

    def add(self, offset: int, index: int, event: e.Event) -> None:
        """A confirmed event, which a dispatch may soon have to tell of."""
        if self._far and isinstance(event, TOLD):
            self._keep((offset, index), event)

    def lacking(self, node: TaskNode) -> tuple[ProblemRef, ...]:
        """What has to be read before anything is told of this task."""
        if not self._far:
            return ()
        return tuple([ref for ref in (node.problem, node.note) if ref is not None and _place(ref) not in self._kept])

    def told(self, ref: ProblemRef | None, partition: int) -> e.Event | None:
        """The event that a problem refers to, of a task that lacks nothing. Raises `DagbokError` when it cannot be
        read."""
        if ref is None:
            return None
        return self._kept[_place(ref)] if self._far else _read(self._log, partition, ref)

    async def read(self, partition: int, refs: Iterable[ProblemRef]) -> None:
        """Bring these, in a thread. Raises `DagbokError` when one of them cannot be read."""
        for ref in sorted(set(refs), key=_place):  # those of one commit next to each other
            self._keep(_place(ref), await asyncio.to_thread(_read, self._log, partition, ref))

    def clear(self) -> None:
        """Another fold may have other events at the same places."""
        self._kept.clear()

    def _keep(self, place: Place, event: e.Event) -> None:
        self._kept[place] = event
        self._kept.move_to_end(place)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def _place(ref: ProblemRef) -> Place:
    return ref.offset, ref.event


def _read(log: Log, partition: int, ref: ProblemRef) -> e.Event:
    return events_at(log, partition, ref.offset)[ref.event]
