"""What a budget holds back, how a run is blocked by it and goes on, and how many verdicts may be awaited."""

from __future__ import annotations

import pytest

from dagbok.events.codes import Code
from dagbok.events.run.commands import PauseRun, ResumeRun, SetLimits, StartRun
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptFailed,
    AttemptLost,
    AttemptOpened,
    CandidateSubmitted,
    LimitsSet,
    RunBlocked,
    RunReopened,
    RunResumed,
    RunStarted,
    TaskBackedOff,
    TasksAdded,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.testing import (
    Limits,
    TaskLimits,
    Usage,
    blocked,
    candidate,
    decompose,
    failure,
    given,
    like,
    pin,
    start,
    task,
)
from tests.spec.steps import limited, reserving

# What is held back.


def test_work_opens_while_all_that_is_reserved_stays_within_the_limit() -> None:
    run = limited(*(reserving(f"t{place}", 30) for place in range(5)), tokens=100)
    assert list(run.state.active) == ["t0", "t1", "t2"]
    freed = run.submits("t0", candidate(1), usage=Usage(10))
    freed.then(CandidateSubmitted, like(AttemptOpened, task="t0", kind="verify"), like(AttemptOpened, task="t3"))
    freed.submits("t1", candidate(1), usage=Usage(30)).then(
        CandidateSubmitted, like(AttemptOpened, task="t1", kind="verify")
    )


@pytest.mark.parametrize(("tokens", "cost"), [(100, None), (None, "100")])
def test_either_limit_holds_back(tokens: int | None, cost: str | None) -> None:
    run = limited(reserving("a", 60, "60"), reserving("b", 60, "60"), tokens=tokens, cost=cost)
    assert list(run.state.active) == ["a"]


def test_work_that_does_not_fit_holds_back_the_work_behind_it() -> None:
    """Else a large task would wait until all small ones are done. A higher priority goes first all the same."""
    run = limited(
        reserving("first", 10, priority=2), reserving("large", 95, priority=1), reserving("small", 1), tokens=100
    )
    assert list(run.state.active) == ["first"]
    done = run.submits("first", candidate(1), usage=Usage(5)).judges("first", "pass")
    done.then_task("large", status="ready")
    assert list(done.state.active) == ["large"]


def test_what_reserves_nothing_needs_something_to_be_left() -> None:
    run = limited(reserving("a", 100), task("b"), tokens=100)
    assert list(run.state.active) == ["a"]
    assert list(limited(reserving("a", 99), task("b"), tokens=100).state.active) == ["a", "b"]


def test_reviews_are_never_held_back() -> None:
    """They finish what is paid for, also after a backoff and when a new task is first in line."""
    run = limited(reserving("a", 50), reserving("b", 60), tokens=100).submits("a", candidate(1), usage=Usage(100))
    run.then(CandidateSubmitted, like(AttemptOpened, task="a", kind="verify"))
    resting = run.judges("a", "error").then(VerdictRecorded, like(TaskBackedOff, task="a", review=True))
    resting.then_state(status="running")
    again = resting.fires("backoff", "a").then(like(AttemptOpened, task="a", kind="verify"))
    again.judges("a", "pass").then(VerdictRecorded, TaskVerified, RunBlocked("budget_exhausted", ("b",)))


def test_a_review_that_rests_behind_work_that_does_not_fit_is_asked_again() -> None:
    """Two rest: the work of one is due first, cannot be paid for, and does not stand in the way."""
    run = limited(reserving("a", 50), reserving("b", 50), tokens=110)
    run = run.fails("b", usage=Usage(70)).submits("a", candidate(1), usage=Usage(40)).judges("a", "error")
    run.then_task("a", status="backoff").then_task("b", status="backoff").then_state(status="running")
    late = max(run.task("a").due_ms, run.task("b").due_ms)
    both = run.after(late).fires("backoff", "a")
    both.then(like(AttemptOpened, task="a", kind="verify"))


# The run is blocked, and goes on.


def test_a_run_is_blocked_when_nothing_runs_that_could_give_something_back() -> None:
    run = limited(reserving("a", 60), reserving("b", 60), tokens=100).submits("a", candidate(1), usage=Usage(60))
    stuck = run.judges("a", "pass").then(VerdictRecorded, TaskVerified, RunBlocked("budget_exhausted", ("b",)))
    stuck.then_state(status="blocked", blocked={}, blocked_by="budget_exhausted").then_task("b", status="ready")
    enough = Limits(max_tokens=120)
    stuck.when(SetLimits(enough)).then(
        LimitsSet(enough, Limits(max_tokens=100)), RunReopened("its limits are raised"), like(AttemptOpened, task="b")
    ).then_state(status="running", blocked_by="")


def test_a_limit_that_is_raised_too_little_leaves_the_run_blocked() -> None:
    run = limited(reserving("a", 60), tokens=50).then_state(status="blocked")
    run.when(SetLimits(Limits(max_tokens=59))).then_state(status="blocked", active={})
    run.when(SetLimits(Limits(max_tokens=60))).then_state(status="running", active={"a": None})
    run.when(SetLimits(Limits(max_open=2_000))).then_state(status="blocked", active={})


def test_a_run_that_can_never_pay_for_its_first_task_is_blocked_at_once() -> None:
    limited(reserving("a", 0, "2"), cost="1.99").then(RunStarted, TasksAdded, RunBlocked("budget_exhausted", ("a",)))


def test_a_task_in_backoff_that_cannot_be_paid_for_blocks_the_run_when_its_time_comes() -> None:
    resting = limited(reserving("a", 60), tokens=100).fails("a", usage=Usage(60)).then_state(status="running")
    resting.fires("backoff", "a").then(RunBlocked("budget_exhausted", ("a",))).when(
        SetLimits(Limits(max_tokens=200))
    ).then(LimitsSet, RunReopened, like(AttemptOpened, task="a"))


def test_a_backoff_that_ends_while_its_task_cannot_be_paid_for_changes_nothing() -> None:
    """Another task runs that may give something back: a commit says something, so the timer is told to come again."""
    run = limited(reserving("a", 60), reserving("b", 40), tokens=100).fails("a", usage=Usage(60))
    run.fires("backoff", "a").then_refused(Code.NOT_DUE).then_task("a", status="backoff")


def test_a_paused_run_is_blocked_by_its_budget_when_it_is_resumed() -> None:
    run = limited(reserving("a", 60), reserving("b", 60), tokens=100).when(PauseRun())
    spent = run.submits("a", candidate(1), usage=Usage(60)).when(ResumeRun())
    spent.then(RunResumed, like(AttemptOpened, task="a", kind="verify")).judges("a", "pass").then_state(
        status="blocked"
    )


def test_a_blocked_budget_may_be_paused_raised_and_resumed() -> None:
    stuck = limited(reserving("a", 60), tokens=50).when(PauseRun()).then_state(status="paused")
    stuck.when(ResumeRun()).then(RunResumed, RunBlocked("budget_exhausted", ("a",)))
    raised = stuck.when(SetLimits(Limits(max_tokens=60))).then(LimitsSet).then_state(status="paused")
    raised.when(ResumeRun()).then(RunResumed, like(AttemptOpened, task="a")).then_state(blocked_by="")


def test_what_cannot_be_paid_for_may_be_cancelled_or_replaced() -> None:
    stuck = limited(reserving("a", 60), task("b"), tokens=50).then_state(status="blocked")
    stuck.cancels("a").then_state(status="running", active={"b": None})
    cheap = stuck.supersedes("a", reserving("a2", 10, priority=1)).then_state(status="running")
    assert list(cheap.state.active) == ["b", "a2"] or list(cheap.state.active) == ["a2", "b"]


def test_a_blocked_task_does_not_hide_that_the_budget_is_exhausted() -> None:
    run = limited(reserving("a", 60, priority=1), reserving("b", 60), tokens=100).submits(
        "a", blocked(), usage=Usage(50)
    )
    run.then_state(status="blocked", blocked_by="budget_exhausted", blocked={"a": "worker_blocked"})
    raised = run.when(SetLimits(Limits(max_tokens=110))).then_state(status="running", active={"b": None})
    raised.fails("b", failure(terminal=True), usage=Usage(60)).then_state(status="blocked", blocked_by="worker_blocked")


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (Limits(max_tokens=0), "max_tokens"),
        (Limits(max_tokens=2**60), "max_tokens"),
        (Limits(max_cost="-1"), "max_cost"),
        (Limits(max_cost="1e9"), "max_cost"),
        (Limits(max_cost=""), "max_cost"),
        (Limits(max_wall_ms=0), "max_wall_ms"),
        (Limits(max_total_artifact_bytes=-1), "max_total_artifact_bytes"),
        (Limits(max_context_bytes=0), "max_context_bytes"),
        (Limits(max_pending_verifications=0), "max_pending_verifications"),
    ],
)
def test_a_limit_that_cannot_be_reached_is_refused(limits: Limits, named: str) -> None:
    given().when(start(task("a"), limits=limits)).then_refused(Code.INVALID_SPEC, naming=named)
    limited(task("a")).when(SetLimits(limits)).then_refused(Code.INVALID_SPEC, naming=named)


def test_limits_that_stand_only_grow_and_one_that_is_none_stays() -> None:
    run = limited(task("a"), tokens=100, cost="1.50")
    run.when(SetLimits(Limits(max_tokens=99, max_cost="1.5"))).then_refused(Code.CONFIG_MISMATCH, naming="max_tokens")
    run.when(SetLimits(Limits(max_tokens=100, max_cost="1.4999"))).then_refused(Code.CONFIG_MISMATCH, naming="max_cost")
    run.when(SetLimits(Limits(max_tokens=100, max_cost="10"))).then(LimitsSet)
    run.when(SetLimits(Limits(max_tokens=100, max_cost="1.5"))).then(LimitsSet)
    run.when(SetLimits(Limits(max_open=2_000))).then(
        like(LimitsSet, limits=Limits(max_open=2_000, max_tokens=100, max_cost="1.50"))
    )


@pytest.mark.parametrize(
    "limits",
    [
        TaskLimits(-1),
        TaskLimits(2**54),
        TaskLimits(0, "x"),
        TaskLimits(0, "-1"),
        TaskLimits(context_bytes=0),
        TaskLimits(context_artifacts=0),
        TaskLimits(context_artifacts=-2),
    ],
)
def test_limits_of_a_task_that_mean_nothing_are_refused(limits: TaskLimits) -> None:
    given().when(start(task("a", limits=limits))).then_refused(Code.INVALID_SPEC)


def test_limits_are_part_of_what_a_task_is() -> None:
    def command(tokens: int) -> StartRun:
        return start(reserving("a", tokens))

    run = given().when(command(1))
    run.when(command(1)).then_repeated()
    run.when(command(2)).then_refused(Code.CONFIG_MISMATCH)


# Back-pressure of reviews.


def test_no_more_work_opens_while_too_much_awaits_a_verdict() -> None:
    """Case 21 of the reference: at the limit nothing new is begun; each verdict lets the next task begin."""
    tasks = [task(f"t{place:02}") for place in range(20)]
    run = limited(*tasks, max_pending_verifications=16, max_open=17)
    for place in range(16):
        run = run.submits(f"t{place:02}", candidate(1))
    run.then(CandidateSubmitted, like(AttemptOpened, task="t15", kind="verify")).then_task("t17", attempt=None)
    assert len(run.state.active) == 17
    run.judges("t00", "pass").then(VerdictRecorded, TaskVerified, like(AttemptOpened, task="t17", kind="work"))
    over = run.submits("t16", candidate(1)).then(CandidateSubmitted, like(AttemptOpened, task="t16", kind="verify"))
    over.judges("t00", "pass").then(VerdictRecorded, TaskVerified)


def test_a_candidate_whose_verifier_rests_still_awaits_a_verdict() -> None:
    """A verifier that is down does not let work pile up behind it."""
    run = limited(task("a"), task("b"), max_pending_verifications=1, max_open=1).submits("a", candidate(1))
    resting = run.judges("a", "error").then(VerdictRecorded, like(TaskBackedOff, review=True))
    resting.then_task("b", status="ready", attempt=None).then_state(status="running")
    resting.fires("backoff", "a").then(like(AttemptOpened, task="a", kind="verify"))


def test_pending_reviews_do_not_block_the_run() -> None:
    run = limited(task("a"), task("b"), max_pending_verifications=1, max_open=1).submits("a", candidate(1))
    run.then_state(status="running").starts("a").fires("lease", "a").then(
        AttemptLost, like(AttemptOpened, task="a", kind="verify")
    )


def test_proposals_await_a_verdict_too() -> None:
    verifiers = {"check": pin("candidate", "decomposition")}
    limits = Limits(max_pending_verifications=1, max_open=2)
    run = given().when(start(task("a"), task("b"), task("c"), verifiers=verifiers, limits=limits))
    run.submits("a", decompose(task("d"))).then_task("c", attempt=None).judges("a", "fail").then(
        VerdictRecorded, like(TaskBackedOff, task="a"), like(AttemptOpened, task="c")
    )


def test_closing_by_fail_fast_charges_and_names_each_attempt() -> None:
    run = given().when(start(reserving("a", 5), reserving("b", 6), failure_policy="fail_fast")).starts("b")
    run.fails("a", failure(terminal=True), usage=Usage(1)).then_state(spent=Usage(7), reserved=Usage())
    closed = run.fails("a", failure(terminal=True)).events[2]
    assert closed == AttemptClosed("b", 1, "run_failed", Usage(6))
    assert isinstance(run.fails("a", failure(terminal=True)).events[0], AttemptFailed)
