"""What clients ask of a run: pause, resume, cancel, raise limits, resolve a block."""

from __future__ import annotations

import pytest

from dagbok.events.codes import Code
from dagbok.events.run.commands import CancelRun, PauseRun, ResolveBlock, ResumeRun, SetLimits
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptOpened,
    CandidateSubmitted,
    LimitsSet,
    RunBlocked,
    RunCancelled,
    RunPaused,
    RunReopened,
    RunResumed,
    RunSucceeded,
    TaskUnblocked,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import Limits
from dagbok.testing import blocked, candidate, failure, given, like, run_of, start, task


def test_pause_and_resume() -> None:
    paused = run_of(task("a")).when(PauseRun("lunch")).then(RunPaused("lunch")).then_state(status="paused")
    paused.when(ResumeRun("back")).then(RunResumed("back")).then_state(status="running")


def test_while_paused_what_runs_finishes_and_opens_on_resume() -> None:
    """No attempt opens or starts, but outcomes and verdicts of what runs are accepted, and nothing of it is lost."""
    both = run_of(task("a"), task("b"), task("c", depends_on=("a",))).starts("a").starts("b")
    paused = both.submits("a", candidate(1)).starts("a").when(PauseRun())
    worked_on = (
        paused.submits("b", candidate(2))
        .then(CandidateSubmitted)
        .judges("a", "pass")
        .then(VerdictRecorded, TaskVerified)
        .then_task("c", status="ready", attempt=None)
        .then_task("b", status="verifying", attempt=None)
    )
    worked_on.when(ResumeRun()).then(
        RunResumed,
        like(AttemptOpened, task="b", kind="verify"),
        like(AttemptOpened, task="c", kind="work"),
    )


def test_a_paused_run_whose_last_root_is_verified_succeeds() -> None:
    reviewed = run_of(task("a")).starts("a").submits("a", candidate(1)).starts("a").when(PauseRun())
    reviewed.judges("a", "pass").then(VerdictRecorded, TaskVerified, RunSucceeded)


def test_a_backoff_that_ends_while_paused_opens_on_resume() -> None:
    backing_off = run_of(task("a")).starts("a").fails("a").when(PauseRun())
    waited = backing_off.fires("backoff", "a").then_refused(Code.RUN_PAUSED)
    waited.when(ResumeRun()).then(RunResumed, like(AttemptOpened, task="a", kind="work"))


def test_a_blocked_run_may_be_paused_and_is_blocked_again_on_resume() -> None:
    stuck = run_of(task("a")).starts("a").submits("a", blocked("no key"))
    stuck.when(PauseRun()).then(RunPaused).when(ResumeRun()).then(RunResumed, like(RunBlocked, tasks=("a",)))


def test_cancel_closes_every_attempt_and_every_open_task() -> None:
    """In one commit: nothing can start after it, and a late result is refused."""
    tasks = (task("done"), task("run"), task("review"), task("open"), task("later", depends_on=("run",)))
    before = run_of(*tasks).starts("done").submits("done", candidate(1)).judges("done", "pass")
    before = before.starts("run").starts("review").submits("review", candidate(2))
    cancelled = before.when(CancelRun("enough")).then(
        AttemptClosed("run", 1, "run_cancelled"),
        AttemptClosed("open", 1, "run_cancelled"),
        AttemptClosed("review", 2, "run_cancelled"),
        RunCancelled("enough"),
    )
    cancelled.then_state(status="cancelled", active={}, ready=[], reviews=[], closed_ms=0)
    assert {id: node.status for id, node in cancelled.state.tasks.items()} == {
        "done": "verified",
        "run": "cancelled",
        "review": "cancelled",
        "open": "cancelled",
        "later": "cancelled",
    }
    late = before.state.tasks["run"]
    assert late.attempt is not None
    cancelled.submits("run", candidate(3), claim=late.attempt.claim).then_refused(Code.RUN_CLOSED)


def test_cancel_reaches_blocked_and_backing_off_tasks_but_not_failed_ones() -> None:
    before = run_of(task("b"), task("w"), task("f"), task("z")).starts("b").submits("b", blocked())
    before = before.starts("w").fails("w").starts("f").fails("f", failure(terminal=True))
    cancelled = before.when(CancelRun()).then_state(blocked={}, backoffs=[])
    statuses = {id: node.status for id, node in cancelled.state.tasks.items()}
    assert statuses == {"b": "cancelled", "w": "cancelled", "f": "failed", "z": "cancelled"}


def test_limits_are_raised_and_the_room_is_used_at_once() -> None:
    full = given().when(start(task("a"), task("b"), task("c"), limits=Limits(max_open=1)))
    full.when(SetLimits(Limits(max_open=2))).then(
        LimitsSet(Limits(max_open=2), before=Limits(max_open=1)), like(AttemptOpened, task="b")
    ).then_state(limits=Limits(max_open=2))


def test_limits_only_grow() -> None:
    run = given().when(start(task("a"), limits=Limits(max_attempts=5, max_open=7)))
    run.when(SetLimits(Limits(max_attempts=4, max_open=7))).then_refused(Code.CONFIG_MISMATCH, naming="max_attempts")
    run.when(SetLimits(Limits())).then_refused(Code.CONFIG_MISMATCH, naming="max_attempts")


def test_a_limit_beyond_all_numbers_is_refused() -> None:
    run_of(task("a")).when(SetLimits(Limits(max_tasks=2**60))).then_refused(Code.INVALID_SPEC, naming="max_tasks")


def test_a_raised_attempt_limit_counts_for_the_next_failure() -> None:
    once = given().when(start(task("a"), limits=Limits(max_attempts=1))).starts("a")
    raised = once.when(SetLimits(Limits(max_attempts=2)))
    raised.fails("a").then_task("a", status="backoff")
    once.fails("a").then_task("a", status="failed")


def test_a_resolved_task_runs_again_and_reopens_the_run() -> None:
    stuck = run_of(task("a")).starts("a").submits("a", blocked("no key")).then_state(status="blocked")
    resolved = stuck.when(ResolveBlock("a", "key added")).then(
        TaskUnblocked("a", "key added"),
        like(RunReopened, reason="task a is resolved"),
        like(AttemptOpened, task="a", epoch=2, kind="work"),
    )
    resolved.then_state(status="running", blocked={})


@pytest.mark.parametrize("note", ["", "done"])
def test_a_resolved_task_is_blocked_no_more(note: str) -> None:
    """With or without a note; a task that is resolved may not be named when the run blocks on another one later."""
    both = run_of(task("a"), task("b")).starts("a").submits("a", blocked("first")).starts("b")
    resolved = both.when(ResolveBlock("a", note)).then_state(blocked={})
    finished = resolved.starts("a").submits("a", candidate(1)).judges("a", "pass")
    finished.submits("b", blocked("second")).then_state(status="blocked", blocked={"b": "worker_blocked"})


def test_a_note_is_part_of_the_next_input() -> None:
    stuck = run_of(task("a")).starts("a").submits("a", blocked("no key"))
    with_note, without = stuck.when(ResolveBlock("a", "added")), stuck.when(ResolveBlock("a"))
    one, other = with_note.task("a").attempt, without.task("a").attempt
    assert one is not None
    assert other is not None
    assert one.input_hash != other.input_hash


def test_a_task_is_resolved_while_the_run_goes_on_or_is_paused() -> None:
    both = run_of(task("a"), task("b")).starts("a").submits("a", blocked("no key"))
    both.when(ResolveBlock("a")).then(TaskUnblocked, like(AttemptOpened, task="a"))
    both.when(PauseRun()).when(ResolveBlock("a")).then(TaskUnblocked).then_state(status="paused").when(
        ResumeRun()
    ).then(RunResumed, like(AttemptOpened, task="a"))


def test_only_a_blocked_task_is_resolved() -> None:
    run_of(task("a")).when(ResolveBlock("a")).then_refused(Code.VERSION_CONFLICT, naming="ready")
    run_of(task("a")).when(ResolveBlock("b")).then_refused(Code.NOT_FOUND, naming="'b'")
