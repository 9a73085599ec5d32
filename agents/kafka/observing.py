"""What is counted of the commits of one partition, as they are confirmed: a watcher beside the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dagbok.agents.kafka.metrics import Metrics
from dagbok.agents.queue.port import lane_of
from dagbok.agents.scheduler.handle import Decided
from dagbok.events.run import events as e
from dagbok.events.run.commands import RUN_COMMANDS
from dagbok.events.run.values import AttemptKind
from dagbok.projections.partition import PartitionState

OTHER = "other"
"""Whatever a command calls itself that is none of ours: a label has few values."""

_ENDS: dict[type[e.Event], str] = {
    e.CandidateSubmitted: "candidate",
    e.DecompositionProposed: "decompose",
    e.DecompositionAccepted: "decompose",
    e.DecompositionRefused: "decompose",
    e.AttemptFailed: "failed",
    e.AttemptLost: "lost",
    e.AttemptReleased: "released",
    e.AttemptClosed: "closed",
    e.TaskBlocked: "blocked",
}
_CAUSES: dict[type[e.Event], str] = {
    e.AttemptFailed: "failed",
    e.AttemptLost: "lost",
    e.DecompositionRefused: "rejected",
}
_GIVEN_UP = (e.TaskFailed, e.TaskBlocked, e.TaskCancelled, e.RunFailed, e.RunCancelled)


class _Open(NamedTuple):
    kind: AttemptKind
    pool: str
    opened_ms: int
    claimed: bool


class Observer:
    """A `Watcher`. Forgets the partition with `close`."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._open: dict[tuple[str, str, int], _Open] = {}

    def __call__(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """Count a batch; an empty one stands for a fold."""
        if not batch:
            self._rebuild(state)
        for decided in batch:
            self._decision(decided)
            if decided.stream is not None:
                self._attempts(decided, decided.stream)

    def close(self) -> None:
        """Nothing is open here any more."""
        for key in tuple(self._open):
            self._forget(key)

    def _rebuild(self, state: PartitionState) -> None:
        self.close()
        for run in state.runs.values():
            for task in run.active:
                node = run.tasks[task]
                if (attempt := node.attempt) is not None:
                    key = run.stream, task, attempt.epoch
                    claimed = attempt.claim is not None
                    self._add(key, _Open(attempt.kind, node.spec.pool, attempt.opened_ms, claimed))

    def _decision(self, decided: Decided) -> None:
        type_name = decided.command.type if decided.command.type in RUN_COMMANDS else OTHER
        outcome = "accepted"
        for event in decided.events:
            if isinstance(event, e.CommandRefused):
                outcome = "refused"
                self._metrics.refusals.labels(code=event.code).inc()
                if event.raw is not None:
                    self._metrics.dead_letters.labels(code=event.code).inc()
            elif isinstance(event, e.CommandRepeated):
                outcome = "repeated"
        self._metrics.decisions.labels(type=type_name, outcome=outcome).inc()

    def _attempts(self, decided: Decided, stream: str) -> None:
        now_ms = decided.commit.seal.now_ms
        for event in decided.events:
            if isinstance(event, e.AttemptOpened):
                self._add((stream, event.task, event.epoch), _Open(event.kind, event.pool, now_ms, False))
            elif isinstance(event, e.AttemptStarted):
                self._claimed((stream, event.task, event.epoch), now_ms)
            elif isinstance(event, e.VerdictRecorded):
                self._ended((stream, event.task, event.epoch), event.report.verdict, now_ms)
                if event.report.verdict != "pass":
                    self._repeated(decided, "work", event.task, "rejected")
            elif (end := _ENDS.get(type(event))) is not None:
                task, epoch = event.task, event.epoch  # type: ignore[attr-defined]  # all of `_ENDS` have them
                kind = self._ended((stream, task, epoch), end, now_ms)
                if (cause := _CAUSES.get(type(event))) is not None:
                    self._repeated(decided, kind, task, cause)

    def _claimed(self, key: tuple[str, str, int], now_ms: int) -> None:
        found = self._open.get(key)
        if found is not None and not found.claimed:
            self._metrics.schedule_to_start.labels(kind=found.kind).observe((now_ms - found.opened_ms) / 1000)
            self._waiting(found, -1)
            self._open[key] = found._replace(claimed=True)

    def _ended(self, key: tuple[str, str, int], end: str, now_ms: int) -> AttemptKind:
        found = self._open.get(key)
        if found is None:
            return "work"
        self._metrics.attempts.labels(kind=found.kind, end=end).inc()
        self._metrics.attempt_latency.labels(kind=found.kind).observe((now_ms - found.opened_ms) / 1000)
        self._forget(key)
        return found.kind

    def _repeated(self, decided: Decided, kind: AttemptKind, task: str, cause: str) -> None:
        """Unless the same commit gives the task up."""
        for event in decided.events:
            if isinstance(event, _GIVEN_UP) and getattr(event, "task", task) == task:
                return
        self._metrics.retries.labels(kind=kind, cause=cause).inc()

    def _add(self, key: tuple[str, str, int], attempt: _Open) -> None:
        self._open[key] = attempt
        if not attempt.claimed:
            self._waiting(attempt, 1)

    def _forget(self, key: tuple[str, str, int]) -> None:
        attempt = self._open.pop(key)
        if not attempt.claimed:
            self._waiting(attempt, -1)

    def _waiting(self, attempt: _Open, change: int) -> None:
        self._metrics.waiting.change(lane_of(attempt.kind, attempt.pool), change)
