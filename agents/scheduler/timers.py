"""Deadlines of the confirmed state: leases, timeouts and backoffs become `FireTimer` commands when they have passed.

Not before everything that was in `commands` after the deadline is decided: a renewal that waits there must win.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Literal

import msgspec

from dagbok.agents.scheduler.handle import Decided
from dagbok.events.run import events as e
from dagbok.events.run.commands import FireTimer
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState

TimerKind = Literal["lease", "timeout", "backoff"]

AGAIN_MS = 500
"""When a timer that fired had no effect (the run is paused or full, the command was refused), it fires again after
this."""


class Timer(msgspec.Struct, frozen=True, order=True, gc=False):
    """A deadline in log time (milliseconds), and what it belongs to. Ordered by when it is to fire."""

    fire_ms: int
    stream: str
    task: str
    epoch: int
    kind: TimerKind


class Timers:
    """A heap of deadlines. Entries are checked against the state when they come up, so renewals cost nothing here."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []

    def rebuild(self, state: PartitionState) -> None:
        """All deadlines of the state."""
        self._heap = [timer for run in state.runs.values() for timer in _timers_of(run)]
        heapify(self._heap)

    def confirmed(self, decided: Decided) -> None:
        """Note the deadlines that a confirmed commit sets."""
        stream = decided.stream
        for event in decided.events:
            if isinstance(event, e.TaskBackedOff):
                # The epoch of the attempt that failed is checked when it fires.
                self._add(event.due_ms, stream, event.task, -1, "backoff")
            elif isinstance(event, e.AttemptStarted):
                self._add(event.lease_until_ms, stream, event.task, event.epoch, "lease")
                if event.timeout_at_ms is not None:
                    self._add(event.timeout_at_ms, stream, event.task, event.epoch, "timeout")

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
                heappush(self._heap, msgspec.structs.replace(timer, fire_ms=deadline_ms))
                continue
            heappush(self._heap, msgspec.structs.replace(timer, fire_ms=now_ms + AGAIN_MS))
            if timer.kind != "backoff" or _may_open(run):
                commands.append((run, FireTimer(timer.kind, timer.task, epoch, deadline_ms)))
        return commands

    def _add(self, deadline_ms: int, stream: str | None, task: str, epoch: int, kind: TimerKind) -> None:
        if stream is not None:
            heappush(self._heap, Timer(deadline_ms, stream, task, epoch, kind))


def _deadline(run: RunState, timer: Timer) -> tuple[int, int] | None:
    """The deadline as the state has it now, with the epoch; none when there is none any more."""
    node = run.tasks.get(timer.task)
    if node is None or run.status in ("succeeded", "failed", "cancelled"):
        return None
    if timer.kind == "backoff":
        return (node.due_ms, node.epoch) if node.status == "backoff" else None
    attempt = node.attempt
    if attempt is None or attempt.epoch != timer.epoch or attempt.claim is None:
        return None
    if timer.kind == "lease":
        return attempt.lease_until_ms, attempt.epoch
    return None if attempt.timeout_at_ms is None else (attempt.timeout_at_ms, attempt.epoch)


def _may_open(run: RunState) -> bool:
    """Whether a task whose backoff is over could open an attempt now; else its turn comes when another one closes."""
    return run.status == "running" and len(run.active) < run.limits.max_open


def _timers_of(run: RunState) -> Iterable[Timer]:
    for due_ms, _, task in run.backoffs:
        yield Timer(due_ms, run.stream, task, -1, "backoff")
    for task in run.active:
        attempt = run.tasks[task].attempt
        if attempt is not None and attempt.claim is not None:
            yield Timer(attempt.lease_until_ms, run.stream, task, attempt.epoch, "lease")
            if attempt.timeout_at_ms is not None:
                yield Timer(attempt.timeout_at_ms, run.stream, task, attempt.epoch, "timeout")
