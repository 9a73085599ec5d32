"""Which attempts open, in which order, and when a run ends: what follows from every change."""

from __future__ import annotations

from dagbok.events.codes import Code
from dagbok.events.run.commands import PauseRun, ResumeRun
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptFailed,
    AttemptOpened,
    RunBlocked,
    RunFailed,
    RunStarted,
    RunSucceeded,
    TaskBlocked,
    TaskFailed,
    TasksAdded,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import Limits
from dagbok.testing import Scenario, blocked, candidate, decompose, failure, given, run_of, start, task

TERMINAL = failure("bad", terminal=True)


def _opened(run: Scenario) -> list[str]:
    return [event.task for event in run.events if isinstance(event, AttemptOpened)]


def test_tasks_open_by_priority_then_in_the_order_in_which_they_came() -> None:
    tasks = (task("c"), task("urgent", priority=5), task("a"), task("low", priority=-1), task("b"))
    assert _opened(run_of(*tasks)) == ["urgent", "c", "a", "b", "low"]


def test_no_more_attempts_are_open_than_the_run_allows() -> None:
    run = given().when(start(*(task(f"t{i}") for i in range(5)), limits=Limits(max_open=2)))
    assert _opened(run) == ["t0", "t1"]
    run = run.starts("t0").submits("t0", candidate(1))
    assert _opened(run) == ["t0"], "the review takes the place of the work"
    run = run.judges("t0", "pass")
    assert _opened(run) == ["t2"]
    run.then_state(active={"t1": None, "t2": None})


def test_what_was_begun_is_finished_first() -> None:
    """Reviews, then tasks that waited out a backoff, then new ones."""
    tasks = (task("review"), task("again"), task("new", priority=9))
    run = given().when(start(*tasks, limits=Limits(max_open=2)))
    assert _opened(run) == ["new", "review"]
    run = run.starts("new").starts("review").when(PauseRun())
    run = run.submits("new", candidate(1)).submits("review", candidate(1)).when(ResumeRun())
    assert _opened(run) == ["new", "review"], "in the order in which they were asked for"
    run = run.judges("new", "pass").starts("again").fails("again").after(60_000)
    assert _opened(run.judges("review", "pass")) == ["again"]


def test_a_due_backoff_goes_before_a_new_task() -> None:
    run = given().when(start(task("a", priority=1), task("b"), task("c"), limits=Limits(max_open=2)))
    waiting = run.starts("a").fails("a")
    assert _opened(waiting) == ["c"]
    late = waiting.after(60_000).submits("b", candidate(1))
    assert _opened(late) == ["b"]
    assert _opened(late.judges("b", "pass")) == ["a"]


def test_a_run_succeeds_when_all_roots_are_verified() -> None:
    run = run_of(task("a"), task("b")).starts("a").submits("a", candidate(1)).judges("a", "pass")
    run.then(VerdictRecorded, TaskVerified).then_state(status="running", open_roots=1)
    run.starts("b").submits("b", candidate(1)).judges("b", "pass").then(VerdictRecorded, TaskVerified, RunSucceeded)


def test_what_no_root_needs_is_closed_when_the_run_succeeds_and_nothing_opens() -> None:
    command = start(task("root"), task("side"), task("later"), roots=("root",), limits=Limits(max_open=2))
    run = given().when(command).starts("side").starts("root").submits("root", candidate(1))
    run.judges("root", "pass").then(
        VerdictRecorded, TaskVerified, AttemptClosed("side", 1, "run_succeeded"), RunSucceeded
    ).then_state(active={})


def test_one_branch_fails_and_the_others_finish() -> None:
    run = run_of(task("bad"), task("good"), task("end", depends_on=("bad", "good")))
    run = run.starts("bad").fails("bad", TERMINAL).then(AttemptFailed, TaskFailed).then_state(status="running")
    run = run.starts("good").submits("good", candidate(1))
    run.judges("good", "pass").then(VerdictRecorded, TaskVerified, RunFailed("worker_failed", ("bad",)))


def test_under_fail_fast_the_first_failure_ends_the_run_and_opens_nothing() -> None:
    tasks = (task("bad"), task("good"), task("third"))
    run = given().when(start(*tasks, failure_policy="fail_fast", limits=Limits(max_open=2)))
    failed = run.starts("good").starts("bad").fails("bad", TERMINAL)
    failed.then(AttemptFailed, TaskFailed, AttemptClosed("good", 1, "run_failed"), RunFailed("worker_failed", ("bad",)))
    failed.then_state(status="failed", active={})
    failed.submits("good", candidate(1)).then_refused(Code.RUN_CLOSED)


def test_a_failure_in_a_paused_fail_fast_run_ends_it_on_resume_and_opens_nothing() -> None:
    run = given().when(start(task("bad"), task("good"), failure_policy="fail_fast")).starts("bad").starts("good")
    paused = run.when(PauseRun()).fails("bad", TERMINAL).then(AttemptFailed, TaskFailed).releases("good")
    resumed = paused.when(ResumeRun())
    assert _opened(resumed) == []
    resumed.then_state(status="failed")


def test_blocked_is_said_only_when_it_is_proven() -> None:
    """Something may be ready, running, in review or in backoff: then the run goes on."""
    run = run_of(task("stuck"), task("other")).starts("stuck").submits("stuck", blocked())
    run.then(TaskBlocked).then_state(status="running")
    running = run.starts("other").then_state(status="running")
    backing_off = running.fails("other").then_state(status="running")
    again = backing_off.fires("backoff", "other").starts("other").submits("other", candidate(1))
    again.then_state(status="running")
    again.judges("other", "pass").then(VerdictRecorded, TaskVerified, RunBlocked("worker_blocked", ("stuck",)))


def test_a_run_with_a_blocked_and_a_failed_task_is_blocked() -> None:
    """A person can still do something."""
    run = run_of(task("stuck"), task("bad")).starts("stuck").submits("stuck", blocked()).starts("bad")
    run.fails("bad", TERMINAL).then(AttemptFailed, TaskFailed, RunBlocked("worker_blocked", ("stuck",)))


def test_a_run_names_at_most_a_hundred_of_its_failed_tasks() -> None:
    run = run_of(*(task(f"t{i:03}") for i in range(120)))
    for i in range(120):
        run = run.fails(f"t{i:03}", TERMINAL)
    ended = run.events[-1]
    assert isinstance(ended, RunFailed)
    assert ended.tasks == tuple(f"t{i:03}" for i in range(100))


def test_a_whole_run_dynamic_failing_repaired_and_integrated() -> None:
    """Decompose, in parallel, one fails its verification, is repaired, the root integrates."""
    run = run_of(task("root")).starts("root").submits("root", decompose(task("analysis"), task("summary")))
    run = run.starts("analysis").starts("summary")
    run = run.submits("analysis", candidate(1)).judges("analysis", "pass")
    run = run.submits("summary", candidate("bad")).judges("summary", "fail").fires("backoff", "summary")
    run = run.starts("summary").submits("summary", candidate("good")).judges("summary", "pass")
    run = run.starts("root").submits("root", candidate({"report": 1}))
    run.judges("root", "pass").then(VerdictRecorded, TaskVerified, RunSucceeded)
    assert {node.status for node in run.judges("root", "pass").state.tasks.values()} == {"verified"}


def test_nothing_of_a_start_depends_on_the_clock() -> None:
    command = start(task("a"), task("b", depends_on=("a",)))
    early, late = given().when(command), given(now_ms=10**12).when(command)
    early.then(RunStarted, TasksAdded, AttemptOpened)
    assert early.events == late.events
