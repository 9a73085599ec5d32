"""Limits of bytes and of time: what a candidate may hand over, what a worker may be handed, how long a run may take."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.run.commands import FireTimer, PauseRun, ResumeRun, SetLimits
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptFailed,
    AttemptOpened,
    CandidateSubmitted,
    LimitsSet,
    RunBlocked,
    RunPaused,
    RunReopened,
    RunResumed,
    RunSucceeded,
    TaskBackedOff,
    TaskBlocked,
    TaskRetried,
    TasksAdded,
    TaskSuperseded,
    TaskUnblocked,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import ArtifactItem, Candidate
from dagbok.testing import (
    Limits,
    Scenario,
    TaskLimits,
    Usage,
    act,
    blocked,
    candidate,
    decompose,
    failure,
    given,
    like,
    run_of,
    start,
    task,
)
from tests.spec.steps import done

# Artifact bytes.


def _stored(*sizes: int) -> Candidate:
    return Candidate(
        tuple(
            ArtifactItem(f"part-{place}", sha256_hex(bytes([place])), size, "text/plain")
            for place, size in enumerate(sizes)
        )
    )


def test_an_artifact_up_to_the_limit_is_staged_and_a_larger_one_is_not() -> None:
    """Whatever store it lies in: its size is compared where it is decided (case 21 of the reference)."""
    run = given().when(start(task("a"), limits=Limits(max_artifact_bytes=100)))
    run.submits("a", _stored(100, 100)).then(CandidateSubmitted, AttemptOpened).then_state(artifact_bytes=200)
    refused = run.submits("a", _stored(10, 101), usage=Usage(5)).then(
        like(AttemptFailed, counted=False, usage=Usage(5)),
        like(TaskBlocked, task="a", code="budget_exhausted"),
        RunBlocked("budget_exhausted", ("a",)),
    )
    refused.then_task("a", status="blocked", failures=0, staged=None).then_state(artifact_bytes=0, spent=Usage(5))
    failed = refused.events[0]
    assert isinstance(failed, AttemptFailed)
    assert failed.failure.message == "artifact 'part-1' has 101 bytes, at most 100 (max_artifact_bytes)"


def test_inline_bytes_count_like_stored_ones() -> None:
    run = given().when(start(task("a"), limits=Limits(max_artifact_bytes=3)))
    run.submits("a", candidate(b"abc")).then(CandidateSubmitted, AttemptOpened)
    run.submits("a", candidate(b"abcd")).then_task("a", status="blocked")


def test_all_that_candidates_hand_over_counts_whatever_became_of_it() -> None:
    """Bytes of a candidate that failed lie in the store as well."""
    run = given().when(start(task("a"), task("b"), limits=Limits(max_total_artifact_bytes=250)))
    once = run.submits("a", _stored(100)).judges("a", "fail").fires("backoff", "a").submits("a", _stored(100))
    once.then_state(artifact_bytes=200).submits("b", _stored(50)).then_state(artifact_bytes=250)
    once.submits("b", _stored(51)).then(AttemptFailed, like(TaskBlocked, task="b", code="budget_exhausted")).then_state(
        artifact_bytes=200
    )


def test_when_the_limit_is_raised_the_blocked_task_is_resolved_and_works_again() -> None:
    run = given().when(start(task("a"), limits=Limits(max_artifact_bytes=100))).submits("a", _stored(101))
    raised = run.when(SetLimits(Limits(max_artifact_bytes=200))).then_task("a", status="blocked")
    again = raised.resolves("a")
    again.then_state(status="running").submits("a", _stored(101)).then(CandidateSubmitted, AttemptOpened)


def test_the_rest_of_the_run_goes_on_beside_a_candidate_that_was_too_large() -> None:
    run = given().when(start(task("a"), task("b"), limits=Limits(max_artifact_bytes=100))).submits("a", _stored(101))
    run.then(AttemptFailed, TaskBlocked).then_state(status="running")


# What a worker is handed.


def _context(limits: TaskLimits | None = None, max_context_bytes: int | None = None) -> Scenario:
    """Task `b` is handed what `a` published: two artifacts of 100 bytes, and 5 + 4 + 4 + 4 bytes of its own."""
    tasks = (task("a"), task("b", depends_on=("a",), limits=limits), task("z"))
    run = given().when(start(*tasks, limits=Limits(max_context_bytes=max_context_bytes)))
    return run.submits("a", _stored(100, 100)).judges("a", "pass")


OWN_BYTES = len("do it") + len("null") * 3


@pytest.mark.parametrize("where", ["task", "run", "both"])
def test_a_task_whose_context_is_too_large_is_blocked_and_nothing_is_cut(where: str) -> None:
    def run(most_bytes: int) -> Scenario:
        limits = None if where == "run" else TaskLimits(context_bytes=most_bytes)
        return _context(limits, {"task": None, "run": most_bytes, "both": most_bytes + 50}[where])

    run(200 + OWN_BYTES).then(VerdictRecorded, TaskVerified, like(AttemptOpened, task="b"))
    run(199 + OWN_BYTES).then(
        VerdictRecorded,
        TaskVerified,
        TaskBlocked("b", "context_overflow", f"{200 + OWN_BYTES} bytes to hand over, at most {199 + OWN_BYTES}"),
    ).then_task("b", status="blocked", failures=0, epoch=0)


def test_the_smaller_of_both_limits_counts() -> None:
    _context(TaskLimits(context_bytes=10_000), 100).then_task("b", status="blocked")
    _context(TaskLimits(context_bytes=100), 10_000).then_task("b", status="blocked")


def test_the_number_of_artifacts_is_limited_too() -> None:
    _context(TaskLimits(context_artifacts=2)).then_task("b", status="ready")
    _context(TaskLimits(context_artifacts=1)).then(
        VerdictRecorded,
        TaskVerified,
        TaskBlocked("b", "context_overflow", "2 artifacts of dependencies, at most 1"),
    )


def test_a_task_without_dependencies_may_be_too_large_by_itself() -> None:
    large = task("a", contract="x" * 100, limits=TaskLimits(context_bytes=50))
    run = given().when(start(large, task("z")))
    assert isinstance(run.events[2], TaskBlocked)
    run.then_task("a", status="blocked").then_state(status="running")


def test_an_integration_is_handed_what_all_children_made_and_the_contract_of_the_whole() -> None:
    root = task("root", limits=TaskLimits(context_bytes=300))
    run = run_of(root, task("z")).submits("root", decompose(task("c"), task("d"), composition_contract="x" * 50))
    children = run.submits("c", _stored(100)).judges("c", "pass").submits("d", _stored(136)).judges("d", "pass")
    children.then(VerdictRecorded, TaskVerified, like(TaskBlocked, task="root", code="context_overflow"))
    fits = run.submits("c", _stored(100)).judges("c", "pass").submits("d", _stored(135)).judges("d", "pass")
    fits.then(VerdictRecorded, TaskVerified, like(AttemptOpened, task="root", phase="integrate"))


def test_what_is_too_large_holds_back_nobody_and_the_run_is_blocked_at_the_end() -> None:
    run = _context(TaskLimits(context_bytes=100))
    done(run, "z").then(VerdictRecorded, TaskVerified, RunBlocked("context_overflow", ("b",)))


def test_a_context_that_is_too_large_is_resolved_after_the_limit_of_the_run_is_raised() -> None:
    run = _context(None, 100)
    run.resolves("b").then(TaskUnblocked, like(TaskBlocked, code="context_overflow"))
    raised = run.when(SetLimits(Limits(max_context_bytes=300))).then_task("b", status="blocked")
    raised.resolves("b").then(TaskUnblocked, like(AttemptOpened, task="b"))


def test_a_context_that_is_too_large_for_the_task_is_mended_by_a_replacement() -> None:
    run = _context(TaskLimits(context_bytes=100))
    larger = task("b2", depends_on=("a",), limits=TaskLimits(context_bytes=1_000))
    run.supersedes("b", larger).then(TaskSuperseded, TasksAdded, like(AttemptOpened, task="b2"))


def test_a_limit_that_comes_while_a_task_rests_blocks_it_at_its_next_attempt() -> None:
    """The one way from backoff to blocked: what the task is handed does not grow, but the run had no limit before."""
    resting = _context().fails("b").then_task("b", status="backoff")
    for most_bytes, status in ((199 + OWN_BYTES, "blocked"), (200 + OWN_BYTES, "ready")):
        limited = resting.when(SetLimits(Limits(max_context_bytes=most_bytes))).then_task("b", status="backoff")
        limited.fires("backoff", "b").then_task("b", status=status, failures=1)
    limited = resting.when(SetLimits(Limits(max_context_bytes=100))).fires("backoff", "b")
    limited.then(like(TaskBlocked, task="b", code="context_overflow")).then_state(backoffs=[], resting={})
    limited.resolves("b").then_task("b", status="blocked")


def test_what_is_told_of_earlier_attempts_is_not_counted() -> None:
    """A retry has as much room as the first try had, whatever is said of that; notes of the author take none either."""
    long = "x" * 1_000
    noted = msgspec.structs.replace(task("a", limits=TaskLimits(context_bytes=OWN_BYTES)), metadata=_raw(long))
    again = given().when(start(noted)).fails("a", failure(long)).fires("backoff", "a").then_task("a", status="ready")
    review = again.submits("a", candidate(1, outputs={"y": long}))
    judged = review.judges("a", act.report(review.state, "a", "fail", diagnostics=_raw(long)))
    third = judged.fires("backoff", "a").then_task("a", status="ready", failures=2)
    third.submits("a", blocked(long)).resolves("a", long).then_task("a", status="ready")


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(text))


def test_a_task_that_was_decomposed_is_handed_more_than_at_first() -> None:
    root = task("root", limits=TaskLimits(context_artifacts=1))
    grown = run_of(root, task("z")).submits("root", decompose(task("c"), task("d")))
    done(grown, "c", "d").then(VerdictRecorded, TaskVerified, like(TaskBlocked, task="root", code="context_overflow"))


# Wall time.

DAY_MS = 86_400_000


def _timed(*ids: str, wall_ms: int = DAY_MS) -> Scenario:
    return given().when(start(*(task(id) for id in ids), limits=Limits(max_wall_ms=wall_ms)))


def test_at_the_end_of_the_wall_time_everything_stops_and_goes_on_when_the_limit_is_raised() -> None:
    run = _timed("a", "b").starts("a")
    ended = run.fires("wall").then(
        AttemptClosed("a", 1, "budget_exhausted"),
        AttemptClosed("b", 1, "budget_exhausted"),
        RunBlocked("budget_exhausted", ()),
    )
    ended.then_state(status="blocked", active={}).then_task("a", status="ready", failures=0, lost=0)
    raised = Limits(max_wall_ms=2 * DAY_MS)
    ended.when(SetLimits(raised)).then(
        LimitsSet, RunReopened("its limits are raised"), like(AttemptOpened, task="a"), like(AttemptOpened, task="b")
    ).then_state(status="running")
    done(ended.when(SetLimits(Limits(max_wall_ms=30 * DAY_MS))), "a", "b").then_state(status="succeeded")


def test_reviews_stop_with_it_and_begin_anew() -> None:
    ended = _timed("a").submits("a", candidate(1)).starts("a").fires("wall")
    ended.then(AttemptClosed("a", 2, "budget_exhausted"), RunBlocked)
    ended.when(SetLimits(Limits(max_wall_ms=30 * DAY_MS))).then(
        LimitsSet, RunReopened, like(AttemptOpened, task="a", kind="verify")
    )


def test_the_wall_timer_is_early_until_its_time() -> None:
    _timed("a").when(FireTimer("wall", "", 0, DAY_MS), now_ms=DAY_MS - 1).then_refused(Code.NOT_DUE)
    _timed("a").when(FireTimer("wall", "", 0, 1), now_ms=2).then_refused(Code.NOT_DUE)


def test_a_raised_limit_moves_the_deadline() -> None:
    moved = _timed("a").when(SetLimits(Limits(max_wall_ms=2 * DAY_MS)))
    moved.when(FireTimer("wall", "", 0, DAY_MS), now_ms=DAY_MS).then_refused(Code.NOT_DUE)
    moved.fires("wall").then(AttemptClosed, RunBlocked)


def test_without_a_limit_or_after_the_end_the_wall_timer_is_stale() -> None:
    run_of(task("a")).when(FireTimer("wall", "", 0, 1), now_ms=2).then_refused(Code.STALE_ATTEMPT)
    ended = _timed("a").fires("wall")
    ended.fires("wall").then_refused(Code.STALE_ATTEMPT)
    done(_timed("a"), "a").fires("wall").then_refused(Code.RUN_CLOSED)


def test_pauses_are_part_of_the_wall_time() -> None:
    paused = _timed("a").starts("a").when(PauseRun())
    paused.fires("wall").then_refused(Code.RUN_PAUSED)
    paused.after(DAY_MS).when(ResumeRun()).then(RunResumed, AttemptClosed, RunBlocked("budget_exhausted", ()))
    paused.after(DAY_MS - 1).when(ResumeRun()).then(RunResumed).then_state(status="running")


def test_a_run_whose_time_is_up_stays_blocked_whatever_is_done_about_its_tasks() -> None:
    """Pausing and resuming it, or repairing a task, buys no time."""
    run = _timed("a", "b", "c", "d").fails("b", failure(terminal=True)).submits("c", blocked())
    ended = run.fires("wall").then_state(status="blocked")
    ended.when(PauseRun()).then(RunPaused).when(ResumeRun()).then(RunResumed, RunBlocked("budget_exhausted", ()))
    ended.retries("b").then(TaskRetried, RunReopened, RunBlocked("budget_exhausted", ()))
    ended.resolves("c").then(TaskUnblocked, RunReopened, RunBlocked("budget_exhausted", ()))
    ended.supersedes("d", task("e")).then(TaskSuperseded, TasksAdded, RunReopened, RunBlocked("budget_exhausted", ()))
    other = Limits(max_wall_ms=DAY_MS, max_open=2_000)
    ended.when(SetLimits(other)).then_state(status="blocked", active={})
    assert all(
        not [event for event in step.events if isinstance(event, AttemptOpened)]
        for step in (ended.retries("b"), ended.resolves("c"), ended.when(SetLimits(other)))
    )


def test_a_result_that_is_decided_after_the_end_and_before_its_timer_counts_and_nothing_opens_after_it() -> None:
    run = _timed("a", "b").submits("a", candidate(1)).starts("b").after(DAY_MS)
    run.judges("a", "pass").then(VerdictRecorded, TaskVerified, AttemptClosed("b", 1, "budget_exhausted"), RunBlocked)


def test_the_last_result_ends_the_run_even_when_it_is_late() -> None:
    run = _timed("a").submits("a", candidate(1)).after(DAY_MS)
    run.judges("a", "pass").then(VerdictRecorded, TaskVerified, RunSucceeded())


def test_a_backoff_that_is_decided_while_the_run_is_blocked_changes_nothing() -> None:
    resting = _timed("a", wall_ms=100).fails("a").then(AttemptFailed, TaskBackedOff)
    ended = resting.fires("wall").then(RunBlocked)
    assert ended.task("a").due_ms >= 100
    ended.fires("backoff", "a").then_refused(Code.NOT_DUE).then_task("a", status="backoff")
    reopened = ended.when(SetLimits(Limits(max_wall_ms=30 * DAY_MS))).then(LimitsSet, RunReopened)
    reopened.fires("backoff", "a").then(like(AttemptOpened, task="a"))


def test_a_run_that_failed_at_its_end_is_not_blocked_by_time() -> None:
    failed = _timed("a").fails("a", failure(terminal=True)).then_state(status="failed")
    failed.fires("wall").then_refused(Code.RUN_CLOSED)
    failed.after(DAY_MS).retries("a").then(TaskRetried, RunReopened, RunBlocked("budget_exhausted", ()))
