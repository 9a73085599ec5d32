"""One branch of a run is cancelled: what ends with it, what goes on, and what becomes of the run."""

from __future__ import annotations

from dagbok.events.codes import Code
from dagbok.events.run.commands import PauseRun, ResumeRun
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptOpened,
    DecompositionRefused,
    RunBlocked,
    RunFailed,
    RunReopened,
    RunResumed,
    RunSucceeded,
    TaskBlocked,
    TaskCancelled,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import Spec
from dagbok.testing import (
    CLAIM,
    Limits,
    Scenario,
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


def _statuses(run: Scenario) -> dict[str, str]:
    return {id: node.status for id, node in run.state.tasks.items()}


def test_a_cancelled_task_ends_and_its_attempt_is_closed() -> None:
    run = (
        run_of(task("a"), task("z"))
        .starts("a")
        .cancels("a", "not needed")
        .then(AttemptClosed("a", 1, "task_cancelled"), TaskCancelled("a", "requested", "not needed"))
    )
    run.then_task("a", status="cancelled", attempt=None).then_state(status="running", cancelled={"a": "task_cancelled"})
    run.submits("a", candidate(1), claim=CLAIM).then_refused(Code.STALE_ATTEMPT)


def test_the_run_fails_with_its_name_when_nothing_else_can_go_on() -> None:
    """What waits for a cancelled task waits for a replacement; the rest of the run is done first."""
    run = run_of(task("a"), task("b", depends_on=("a",)), task("z")).cancels("a").then_state(status="running")
    run.then_task("b", status="waiting", open_deps=1)
    done(run, "z").then(VerdictRecorded, TaskVerified, RunFailed("task_cancelled", ("a",)))


def test_a_run_of_one_cancelled_task_has_failed() -> None:
    run_of(task("a")).cancels("a").then(AttemptClosed, TaskCancelled, RunFailed("task_cancelled", ("a",))).then_state(
        status="failed", active={}
    )


def test_a_failure_is_named_before_a_cancelled_task() -> None:
    run = run_of(task("a"), task("b")).cancels("a").fails("b", failure(terminal=True))
    assert run.events[-1] == RunFailed("worker_failed", ("b",))


def test_a_cancelled_task_that_no_root_needs_does_not_fail_the_run() -> None:
    run = given().when(start(task("extra"), task("a"), roots=("a",))).cancels("extra")
    done(run, "a").then(VerdictRecorded, TaskVerified, RunSucceeded())


def test_under_fail_fast_a_cancelled_task_is_no_failure() -> None:
    run = (
        given().when(start(task("a"), task("b"), failure_policy="fail_fast")).cancels("a").then_state(status="running")
    )
    done(run, "b").then_state(status="failed")


def test_what_was_created_below_ends_with_it() -> None:
    grown = run_of(task("plan"), task("z")).submits("plan", decompose(task("c1"), task("c2"), task("c3")))
    grown = done(grown.submits("c2", decompose(task("d"))), "c3").starts("c1").submits("d", candidate(1))
    cancelled = grown.cancels("plan").then(
        AttemptClosed("c1", 1, "task_cancelled"),
        AttemptClosed("d", 2, "task_cancelled"),
        TaskCancelled("plan", "requested"),
        TaskCancelled("c1", "parent_cancelled"),
        TaskCancelled("c2", "parent_cancelled"),
        TaskCancelled("d", "parent_cancelled"),
    )
    assert _statuses(cancelled) == {
        "plan": "cancelled",
        "z": "ready",
        "c1": "cancelled",
        "c2": "cancelled",
        "c3": "verified",
        "d": "cancelled",
    }
    cancelled.then_state(cancelled={"plan": "task_cancelled"}, reviews=[], active={"z": None})
    cancelled.then_task("d", staged=None)


def _shared(*children: Spec) -> Scenario:
    """`other` reuses the first child of `plan`."""
    run = run_of(task("plan"), task("other")).submits("plan", decompose(*children))
    return run.submits("other", decompose(reuse=(children[0].id,)))


def test_what_something_else_waits_for_goes_on_with_all_that_it_needs() -> None:
    cancelled = _shared(task("c1", depends_on=("c0",)), task("c0"), task("c2")).cancels("plan")
    assert _statuses(cancelled) == {
        "plan": "cancelled",
        "other": "waiting",
        "c1": "waiting",
        "c0": "ready",
        "c2": "cancelled",
    }
    done(cancelled, "c0", "c1").then_task("other", status="ready")


def test_what_is_kept_keeps_what_it_created_itself() -> None:
    grown = _shared(task("c1"), task("c2")).submits("c1", decompose(task("d")))
    cancelled = grown.cancels("plan")
    cancelled.then_task("c1", status="waiting").then_task("d", status="ready").then_task("c2", status="cancelled")


def test_who_waits_but_is_settled_needs_nothing() -> None:
    """The other task that waited for the child is cancelled before: now nobody waits for it."""
    cancelled = _shared(task("c1"), task("c2")).cancels("other").then_task("c1", status="ready").cancels("plan")
    cancelled.then_task("c1", status="cancelled").then_task("c2", status="cancelled").then_state(status="failed")


def test_a_blocked_run_whose_block_is_cancelled_goes_on_or_fails() -> None:
    run = run_of(task("a"), task("b", depends_on=("a",))).submits("a", blocked()).then_state(status="blocked")
    run.cancels("a").then(TaskCancelled, RunReopened, RunFailed("task_cancelled", ("a",))).then_state(blocked={})


def test_a_run_that_is_blocked_on_another_task_stays_blocked() -> None:
    run = run_of(task("a"), task("b")).submits("a", blocked()).submits("b", blocked()).then_state(status="blocked")
    one = run.cancels("a").then(TaskCancelled, RunReopened, RunBlocked("worker_blocked", ("b",)))
    one.then_state(status="blocked", blocked={"b": "worker_blocked"})
    one.resolves("b").then_state(status="running")
    one.cancels("b").then_state(status="failed")


def test_a_blocked_run_names_what_it_is_still_blocked_by_when_one_block_is_cancelled() -> None:
    run = run_of(task("a"), task("b")).submits("a", blocked()).submits("b", decompose(reuse=("nobody",)))
    run.then_state(status="blocked", blocked_by="worker_blocked")
    one = run.cancels("a").then(TaskCancelled, RunReopened, RunBlocked("unknown_dependency", ("b",)))
    one.then_state(blocked_by="unknown_dependency", exhausted=False)


def test_a_branch_with_a_blocked_task_is_cancelled_as_a_whole() -> None:
    grown = run_of(task("plan")).submits("plan", decompose(task("c1"))).submits("c1", blocked())
    grown.then_state(status="blocked").cancels("plan").then(
        TaskCancelled("plan", "requested"),
        TaskCancelled("c1", "parent_cancelled"),
        RunReopened,
        RunFailed("task_cancelled", ("plan",)),
    ).then_state(blocked={})


def test_a_failed_task_below_does_not_fail_the_run_any_more() -> None:
    grown = run_of(task("plan"), task("z")).submits("plan", decompose(task("c1"))).fails("c1", failure(terminal=True))
    grown.cancels("plan").then_state(failed={}, cancelled={"plan": "task_cancelled"}).then_task(
        "c1", status="cancelled"
    )


def test_a_paused_run_cancels_a_branch_and_ends_when_it_is_resumed() -> None:
    paused = run_of(task("a")).when(PauseRun()).cancels("a").then(AttemptClosed, TaskCancelled)
    paused.then_state(status="paused").when(ResumeRun()).then(RunResumed, RunFailed)


def test_the_room_of_a_cancelled_task_is_used_at_once() -> None:
    full = given().when(start(task("a"), task("b"), limits=Limits(max_open=1)))
    full.cancels("a").then(AttemptClosed, TaskCancelled, like(AttemptOpened, task="b"))


def test_a_cancelled_task_cannot_be_waited_for_any_more() -> None:
    run = run_of(task("a"), task("b")).cancels("a")
    told = run.submits("b", decompose(reuse=("a",))).then(
        like(DecompositionRefused, code="unknown_dependency", spent=False), like(AttemptOpened, task="b", kind="work")
    )
    told.submits("b", decompose(reuse=("a",))).then(
        like(DecompositionRefused, code="unknown_dependency", spent=True),
        like(TaskBlocked, code="unknown_dependency"),
        like(RunBlocked, tasks=("b",)),
    )


def test_a_task_that_waits_for_what_took_the_place_of_its_creator_is_cancelled_once() -> None:
    """`n` took the place of `x`, and `t` that of a child of `x`: `n`, for which `t` waits, was left that child, and so
    `t` itself."""
    run = run_of(task("top")).submits("top", decompose(task("x"))).submits("x", decompose(task("c")))
    run = run.supersedes("x", task("n")).supersedes("top", task("top2", depends_on=("n",)))
    waiting = run.supersedes("c", task("t", depends_on=("n",))).then_task("t", status="waiting")
    cancelled = waiting.cancels("t").then_task("n", status="ready")
    told = [event for event in cancelled.events if isinstance(event, TaskCancelled)]
    assert told == [TaskCancelled("t", "requested")]


def test_a_replacement_of_a_cancelled_branch_finishes_the_run() -> None:
    grown = run_of(task("plan")).submits("plan", decompose(task("c1"))).cancels("plan").then_state(status="failed")
    done(grown.supersedes("plan", task("plan2")), "plan2").then_state(status="succeeded", cancelled={})


def test_a_chain_of_ten_thousand_below_is_cancelled_without_recursion() -> None:
    children = [task(f"c{place}", depends_on=(f"c{place - 1}",) if place else ()) for place in range(10_000)]
    cancelled = run_of(task("plan"), task("z")).submits("plan", decompose(*children)).cancels("plan")
    assert sum(isinstance(event, TaskCancelled) for event in cancelled.events) == 10_001
    cancelled.then_state(active={"z": None})


def test_tasks_below_each_other_to_the_depth_of_the_run_are_cancelled() -> None:
    run = given().when(start(task("d0"), task("z"), max_depth=50))
    for depth in range(50):
        run = run.submits(f"d{depth}", decompose(task(f"d{depth + 1}")))
    assert set(_statuses(run.cancels("d0")).values()) == {"cancelled", "ready"}
