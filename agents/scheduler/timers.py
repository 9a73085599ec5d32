"""Deadlines of the confirmed state: leases, timeouts and backoffs become `FireTimer` commands when they have passed.

Not before everything that was in `commands` after the deadline is decided: a renewal that waits there must win.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

import msgspec

from dagbok.agents.scheduler.handle import Decided
from dagbok.events.run import events as e
from dagbok.events.run.commands import FireTimer, TimerKind
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import CLOSED_RUN, RunState

AGAIN_MS, LONGEST_AGAIN_MS = 500, 60_000
"""When a timer that fired had no effect (the run is paused or full, the command was refused), it fires again after
this, and then after twice as long each time."""

SMALL = 256
"""A heap up to this length is not worth tidying up."""


class Timer(msgspec.Struct, frozen=True, order=True, gc=False):
    """A deadline in log time (milliseconds), and what it belongs to; `fired`: how often it did. Ordered by when it is
    to fire."""

    fire_ms: int
    stream: str
    task: str
    epoch: int
    kind: TimerKind
    fired: int = 0

    def moved(self, deadline_ms: int) -> Timer:
        """The deadline itself is later now."""
        return msgspec.structs.replace(self, fire_ms=deadline_ms, fired=0)

    def again(self, now_ms: int) -> Timer:
        """It fired, and nothing tells yet whether that had an effect."""
        pause_ms = min(AGAIN_MS << min(self.fired, 20), LONGEST_AGAIN_MS)
        return msgspec.structs.replace(self, fire_ms=now_ms + pause_ms, fired=self.fired + 1)


class Timers:
    """A heap of deadlines. Entries are checked against the state when they come up, so renewals cost nothing here.
    Those whose attempt is over are thrown out when the heap is twice as long as it was after the last time, so it stays
    in proportion to what is open."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._tidy_at = SMALL

    def rebuild(self, state: PartitionState) -> None:
        """All deadlines of the state."""
        self._heap = [timer for run in state.runs.values() for timer in _timers_of(run)]
        heapify(self._heap)
        self._tidy_at = max(SMALL, 2 * len(self._heap))

    def __len__(self) -> int:
        return len(self._heap)

    def confirmed(self, state: PartitionState, decided: Decided) -> None:
        """Note the deadlines that a confirmed commit sets. `state` is at least as new as the commit."""
        stream = decided.stream
        for event in decided.events:
            if isinstance(event, e.TaskBackedOff):
                # The epoch of the attempt that failed is checked when it fires.
                self._add(event.due_ms, stream, event.task, -1, "backoff")
            elif isinstance(event, e.AttemptStarted):
                self._add(event.lease_until_ms, stream, event.task, event.epoch, "lease")
                if event.timeout_at_ms is not None:
                    self._add(event.timeout_at_ms, stream, event.task, event.epoch, "timeout")
            elif isinstance(event, e.RunReopened) and stream is not None:
                # Its timers may have come up, and been thrown out, while it was closed.
                for timer in _timers_of(state.runs[stream]):
                    heappush(self._heap, timer)
            elif isinstance(event, e.RunStarted | e.LimitsSet) and stream is not None:
                for timer in _wall_timer(state.runs[stream]):
                    heappush(self._heap, timer)
        if len(self._heap) > self._tidy_at:
            self._tidy(state)

    def next_ms(self) -> int | None:
        """Log time of the first deadline."""
        return self._heap[0].fire_ms if self._heap else None

    def due(self, state: PartitionState, now_ms: int) -> list[tuple[RunState, FireTimer]]:
        """The commands of what has passed by now; each fires again later unless its deadline is gone by then."""
        commands = []
        while self._heap and self._heap[0].fire_ms <= now_ms:
            timer = heappop(self._heap)
            run = state.runs.get(timer.stream)
            found = None if run is None else _deadline(run, timer)
            if run is None or found is None:
                continue
            deadline_ms, epoch = found
            if deadline_ms > now_ms:
                heappush(self._heap, timer.moved(deadline_ms))
                continue
            heappush(self._heap, timer.again(now_ms))
            if _can_act(run, timer):
                commands.append((run, FireTimer(timer.kind, timer.task, epoch, deadline_ms)))
        return commands

    def _tidy(self, state: PartitionState) -> None:
        kept = {}
        for timer in self._heap:
            run = state.runs.get(timer.stream)
            if run is not None and _deadline(run, timer) is not None:
                kept[timer.stream, timer.task, timer.epoch, timer.kind] = timer
        self._heap = list(kept.values())
        heapify(self._heap)
        self._tidy_at = max(SMALL, 2 * len(self._heap))

    def _add(self, deadline_ms: int, stream: str | None, task: str, epoch: int, kind: TimerKind) -> None:
        if stream is not None:
            heappush(self._heap, Timer(deadline_ms, stream, task, epoch, kind))


def _deadline(run: RunState, timer: Timer) -> tuple[int, int] | None:
    """The deadline as the state has it now, with the epoch; none when there is none any more."""
    if run.status in CLOSED_RUN:
        return None
    if timer.kind == "wall":
        return next(((wall.fire_ms, 0) for wall in _wall_timer(run)), None)
    node = run.tasks.get(timer.task)
    if node is None:
        return None
    if timer.kind == "backoff":
        return (node.due_ms, node.epoch) if node.status == "backoff" else None
    attempt = node.attempt
    if attempt is None or attempt.epoch != timer.epoch or attempt.claim is None:
        return None
    if timer.kind == "lease":
        return attempt.lease_until_ms, attempt.epoch
    return None if attempt.timeout_at_ms is None else (attempt.timeout_at_ms, attempt.epoch)


def _can_act(run: RunState, timer: Timer) -> bool:
    """Whether firing would do something now. A task whose backoff is over opens an attempt when the run has room for
    one; else its turn comes when another closes. Wall time ends a run that is running."""
    if timer.kind in ("lease", "timeout"):
        return True
    return run.status == "running" and (timer.kind == "wall" or len(run.active) < run.limits.max_open)


def _wall_timer(run: RunState) -> Iterable[Timer]:
    """The end of the wall time of a run that is not stopped already."""
    limit_ms = run.limits.max_wall_ms
    if limit_ms is not None and run.status in ("running", "paused"):
        yield Timer(run.started_ms + limit_ms, run.stream, "", 0, "wall")


def _timers_of(run: RunState) -> Iterable[Timer]:
    yield from _wall_timer(run)
    for due_ms, _, task in run.backoffs:
        yield Timer(due_ms, run.stream, task, -1, "backoff")
    for task in run.active:
        attempt = run.tasks[task].attempt
        if attempt is not None and attempt.claim is not None:
            yield Timer(attempt.lease_until_ms, run.stream, task, attempt.epoch, "lease")
            if attempt.timeout_at_ms is not None:
                yield Timer(attempt.timeout_at_ms, run.stream, task, attempt.epoch, "timeout")
