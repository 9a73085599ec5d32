"""Where a run and a task can stand when a command comes: one history for every row of `messages.md`, section 3."""

from __future__ import annotations

from typing import Final

from dagbok.events.run.commands import CancelRun, PauseRun
from dagbok.events.run.values import Limits
from dagbok.testing import Scenario, blocked, candidate, failure, given, run_of, start, task, when

A: Final = task("a", timeout_ms=300_000)
LONG_AFTER_MS: Final = 10_000_000

_open = run_of(A, task("z"))
_running = _open.starts("a")
_review = _running.submits("a", candidate(1))
_gated = run_of(task("gate"), task("z"), task("a", depends_on=("gate",), when=(when("gate", "/go", True),)))

TASK: Final[dict[str, Scenario]] = {
    "waiting": run_of(task("a", depends_on=("z",)), task("z")),
    "ready, the run is full": given().when(start(A, task("z", priority=1), limits=Limits(max_open=1))),
    "open": _open,
    "running": _running,
    "review open": _review,
    "review running": _review.starts("a"),
    "backoff": _running.fails("a"),
    "review in backoff": _review.judges("a", "error"),
    "blocked": _running.submits("a", blocked()),
    "verified": _review.judges("a", "pass"),
    "failed": _running.fails("a", failure(terminal=True)),
    "skipped": _gated.submits("gate", candidate(outputs={"go": False})).judges("gate", "pass"),
    "cancelled": _running.cancels("a"),
    "superseded": _running.supersedes("a", task("b")),
}
"""Task `a` in each state, in a run that task `z` keeps going."""

_alone = run_of(A).starts("a")

RUN: Final[dict[str, Scenario]] = {
    "absent": given(),
    "running": _alone,
    "paused": _alone.when(PauseRun()),
    "blocked": _alone.submits("a", blocked()),
    "succeeded": _alone.submits("a", candidate(1)).judges("a", "pass"),
    "failed": _alone.fails("a", failure(terminal=True)),
    "cancelled": _alone.when(CancelRun()),
}
"""A run of one task `a`, in each state."""
