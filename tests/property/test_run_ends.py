"""A run that is left to fair workers, verifiers, clocks and operators comes to its end from wherever it is."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.agents.scheduler.decide.budget import may_work
from dagbok.events.run import commands as c
from dagbok.events.run.events import CommandRefused
from dagbok.events.run.values import Limits
from dagbok.projections.task_graph.state import CLOSED_RUN, RunState
from dagbok.testing import act, candidate
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.random_values import AMPLE
from tests.support.scale import scale

BUDGETS = ("max_tokens", "max_cost", "max_wall_ms", "max_total_artifact_bytes")
histories = st.builds(random_history, st.integers(0, 2**32), st.integers(0, 200))
examples = settings(max_examples=scale(40, 3_000), deadline=None)


@examples
@given(histories)
def test_fair_workers_bring_every_run_to_its_end(history: LogBuilder) -> None:
    """Succeeded, unless a task had failed or was cancelled before, or lost the last attempt that it may lose. Nothing
    waits for a command that nobody would think of."""
    for run in list(history.state.runs.values()):
        failed_before = set(run.failed)
        _drive(history, run, resolve=True)
        assert run.status in CLOSED_RUN
        assert {code for id, code in run.failed.items() if id not in failed_before} <= {"poison"}
        assert run.status != "failed" or run.failed or run.cancelled


@examples
@given(histories)
def test_without_a_person_every_run_ends_or_says_that_it_is_blocked(history: LogBuilder) -> None:
    for run in list(history.state.runs.values()):
        _drive(history, run, resolve=False)
        assert run.status in CLOSED_RUN or (run.status == "blocked" and (run.blocked or run.blocked_by))


def _drive(history: LogBuilder, run: RunState, *, resolve: bool) -> None:
    """Answer whatever is asked, the oldest first, until nothing is asked. Every command has an effect."""
    if run.status == "paused":
        _send(history, run, c.ResumeRun())
    if resolve and run.status not in CLOSED_RUN:
        _send(history, run, c.SetLimits(_richer(run.limits)))
    for _ in range(10 * len(run.tasks) + 10):
        command = _next(history, run, resolve=resolve)
        if command is None:
            return
        _send(history, run, command)
    raise AssertionError("a run that makes progress with every command has to end some time")


def _next(history: LogBuilder, run: RunState, *, resolve: bool) -> c.RunCommand | None:
    if run.status in CLOSED_RUN:
        return None
    for id in run.active:
        attempt = run.tasks[id].attempt
        if attempt is None:
            continue
        if attempt.claim is not None and attempt.lease_until_ms <= history.now_ms:
            return act.fire_timer(run, "lease", id)
        if attempt.kind == "verify":
            return act.submit_verdict(run, id, "pass")
        return act.submit_outcome(run, id, candidate({"of": id}))
    if run.backoffs and run.status != "blocked":
        task = run.backoffs[0][2]
        if run.resting and run.tasks[task].staged is None and not may_work(run, run.tasks[task]):
            task = min(run.resting, key=lambda id: run.tasks[id].due_ms)  # the work waits for that verdict
        history.now_ms = max(history.now_ms, run.tasks[task].due_ms)
        return act.fire_timer(run, "backoff", task)
    if run.blocked and resolve:
        task, code = next(iter(run.blocked.items()))
        return c.CancelTask(task) if code == "context_overflow" else c.ResolveBlock(task)
    return None


def _send(history: LogBuilder, run: RunState, command: c.RunCommand) -> None:
    events = history.send(run.run, command)
    assert not isinstance(events[0], CommandRefused), events[0]


def _richer(limits: Limits) -> Limits:
    """The same run with more to spend."""
    budgets = {name: getattr(AMPLE, name) for name in BUDGETS if getattr(limits, name) is not None}
    return msgspec.structs.replace(limits, **budgets)
