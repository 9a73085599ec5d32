"""What random histories have come past: commands, events, codes, and the ways from one status to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.events.run.events import EVENTS
from dagbok.projections.task_graph.state import RunState

RUN = "the run"
STARTS = ("waiting", "ready", "skipped")
OPEN = ("waiting", "ready", "running", "verifying", "backoff", "blocked")
WAYS = {
    "none": STARTS,
    "waiting": ("ready", "skipped"),
    "ready": ("running", "blocked"),
    "running": ("ready", "verifying", "backoff", "blocked", "failed"),
    "verifying": ("verified", "waiting", "ready", "backoff", "blocked", "failed"),
    "backoff": ("ready", "verifying"),
    "blocked": ("ready", "verifying"),
    "failed": ("ready",),
    "run running": ("run paused", "run blocked", "run succeeded", "run failed", "run cancelled"),
    "run paused": ("run running", "run succeeded", "run cancelled"),
    "run blocked": ("run running", "run failed", "run cancelled"),
    "run failed": ("run running",),
}
"""Section 7 of `docs/design/messages.md`, as it shows between two commands."""
MOVES = (
    *(f"{old} → {new}" for old, all_new in WAYS.items() for new in all_new),
    *(f"{old} → {new}" for old in (*OPEN, "failed") for new in ("cancelled", "superseded")),
    "cancelled → superseded",
)
REFUSALS = (
    *(
        "run_closed",
        "run_paused",
        "not_due",
        "not_found",
        "version_conflict",
        "config_mismatch",
        "idempotency_conflict",
    ),
    *("stale_attempt", "attempt_claimed", "lease_rejected", "verdict_mismatch", "artifact_integrity"),
    *("invalid_spec", "invalid_outcome", "undecodable"),
    *("budget_exhausted", "cycle", "unknown_dependency", "verifier_unavailable", "weaker_verifier"),
)
CODES = tuple(
    f"{event} {code}"
    for event, codes in {
        "TaskBlocked": "worker_blocked inconclusive verifier_error poison context_overflow budget_exhausted cycle "
        "weaker_verifier unknown_dependency idempotency_conflict verifier_unavailable invalid_outcome version_conflict",
        "TaskFailed": "worker_failed verification_failed poison timeout",
        "RunBlocked": "budget_exhausted worker_blocked",
        "RunFailed": "task_cancelled worker_failed",
        "AttemptLost": "process_gone lease_expired",
        "overtaken": "version_conflict unknown_dependency idempotency_conflict cycle",
    }.items()
    for code in codes.split()
)
RARE = frozenset(
    (
        "failed → cancelled",
        "running → backoff",
        "verifying → superseded",
        "TaskBlocked verifier_unavailable",
        "backoff → superseded",
        "TaskBlocked idempotency_conflict",
        "verifying → cancelled",
        "verifying → ready",
        "run paused → run cancelled",
        "verifier_unavailable",
        "TaskBlocked weaker_verifier",
        "none → skipped",
        "running → waiting",
        "running → superseded",
        "running → cancelled",
        "verifying → failed",
        "run paused → run succeeded",
        "verdict_mismatch",
        "artifact_integrity",
        "TaskBlocked unknown_dependency",
        "overtaken cycle",
        "overtaken idempotency_conflict",
        "TaskFailed timeout",
        "TaskFailed verification_failed",
    )
)
"""Seen once in some hundreds of histories."""
OF_PARTITIONS = frozenset(("CommandsLost",))
"""Events that are of a partition and of no run: no command to a run gives one."""


class Seen:
    """Counts by kind: commands (accepted ones), events, codes (of refusals, blocks and failures), moves (from → to)."""

    def __init__(self) -> None:
        self.commands: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.moves: Counter[str] = Counter()

    @staticmethod
    def statuses(run: RunState) -> dict[str, str]:
        """Of the tasks, and of the run itself."""
        return {id: str(node.status) for id, node in run.tasks.items()} | {RUN: f"run {run.status}"}

    def answered(self, command: c.RunCommand, before: dict[str, str], events: Sequence[e.Event], run: RunState) -> None:
        """A command, and what became of the run, which was as `before`."""
        self.events.update(type(event).__name__ for event in events)
        first = events[0]
        if isinstance(first, e.CommandRefused):
            self.refusals[first.code] += 1
        elif not isinstance(first, e.CommandRepeated):
            self.commands[type(command).__name__] += 1
        for event in events:
            if not isinstance(event, e.CommandRefused) and (code := getattr(event, "code", None)) is not None:
                self.codes[f"{type(event).__name__} {code}"] += 1
            if isinstance(event, e.DecompositionRefused) and not event.spent:
                self.codes[f"overtaken {event.code}"] += 1
        after = self.statuses(run)
        moved = {id: (before.get(id, "none"), status) for id, status in after.items() if before.get(id) != status}
        self.moves.update(f"{old} → {new}" for old, new in moved.values())

    def missing(self, *, rare: bool) -> list[str]:
        """What a run can show and was not seen yet; what is `rare` counts only when asked for."""
        wanted = (
            (self.commands, tuple(c.RUN_COMMANDS)),
            (self.events, tuple(name for name in EVENTS if name not in OF_PARTITIONS)),
            (self.refusals, REFUSALS),
            (self.codes, CODES),
            (self.moves, MOVES),
        )
        return [name for seen, names in wanted for name in names if not seen[name] and (rare or name not in RARE)]
