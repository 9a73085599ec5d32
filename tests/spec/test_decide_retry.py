"""A failed task starts again, and with it a run that failed."""

from __future__ import annotations

import pytest

from dagbok.events.codes import Code
from dagbok.events.run.commands import CancelRun, PauseRun, ResumeRun
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptFailed,
    AttemptOpened,
    RunFailed,
    RunReopened,
    RunResumed,
    RunSucceeded,
    TaskFailed,
    TaskRetried,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.testing import (
    Limits,
    blocked,
    decompose,
    failure,
    given,
    like,
    run_of,
    start,
    task,
)
from tests.spec.steps import done, fail_fast

TERMINAL = failure(terminal=True)


FAILED = run_of(task("a"), task("b", depends_on=("a",))).starts("a").fails("a", TERMINAL)


def test_a_failed_task_starts_again_and_its_run_goes_on_to_the_end() -> None:
    """Case 6 of the reference: a failed run can be repaired."""
    FAILED.then_state(status="failed", failed={"a": "worker_failed"})
    again = FAILED.retries("a", "the server is up").then(
        TaskRetried("a", "the server is up"),
        like(RunReopened),
        like(AttemptOpened, task="a", epoch=2, kind="work"),
    )
    again.then_state(status="running", failed={}, closed_ms=0).then_task("a", status="ready", failures=0)
    done(again, "a", "b").then_state(status="succeeded")


def test_a_retried_task_has_all_of_its_attempts_again() -> None:
    run = given().when(start(task("a"), limits=Limits(max_attempts=2))).fails("a").fires("backoff", "a").fails("a")
    again = run.then_state(status="failed").retries("a").fails("a")
    again.then_task("a", status="backoff", failures=1).fires("backoff", "a").fails("a").then_task("a", status="failed")


def test_a_task_that_lost_its_processes_too_often_may_be_retried() -> None:
    run = given().when(start(task("a"), limits=Limits(max_lost=1))).starts("a").fires("lease", "a")
    run.then_task("a", status="failed").retries("a").then_task("a", lost=0, status="ready")


def test_the_note_and_the_cause_reach_the_next_attempt() -> None:
    hashes = set()
    for message, note in (("one", ""), ("two", ""), ("one", "x"), ("one", "y")):
        failed = run_of(task("a")).fails("a", failure(message, terminal=True)).retries("a", note)
        attempt = failed.task("a").attempt
        assert attempt is not None
        hashes.add(attempt.input_hash)
    assert len(hashes) == 4


def test_a_failed_integration_integrates_again_with_the_children_that_are_there() -> None:
    children = done(run_of(task("root")).submits("root", decompose(task("c"))), "c")
    failed = children.fails("root", TERMINAL).then_state(status="failed")
    failed.retries("root").then(
        TaskRetried, RunReopened, like(AttemptOpened, task="root", phase="integrate")
    ).then_task("c", status="verified")


def test_a_task_is_retried_while_the_rest_of_the_run_goes_on() -> None:
    run = run_of(task("a"), task("z")).fails("a", TERMINAL).then_state(status="running")
    run.retries("a").then(TaskRetried, like(AttemptOpened, task="a"))


def test_a_task_is_retried_in_a_paused_run_and_opens_when_it_is_resumed() -> None:
    run = run_of(task("a"), task("z")).fails("a", TERMINAL).when(PauseRun())
    run.retries("a").then(TaskRetried).then_state(status="paused").when(ResumeRun()).then(
        RunResumed, like(AttemptOpened, task="a")
    )


def test_a_task_is_retried_in_a_run_that_is_blocked_on_another() -> None:
    run = run_of(task("a"), task("z")).fails("a", TERMINAL).submits("z", blocked()).then_state(status="blocked")
    again = run.retries("a").then(TaskRetried, RunReopened, like(AttemptOpened, task="a"))
    done(again, "a").then_state(status="blocked", blocked_by="worker_blocked")


@pytest.mark.parametrize("ended", ["succeeded", "cancelled"])
def test_an_end_that_is_final_cannot_be_repaired(ended: str) -> None:
    run = given().when(start(task("bad"), task("a"), roots=("a",))).fails("bad", TERMINAL)
    run = run.when(CancelRun()) if ended == "cancelled" else done(run, "a")
    run.then_state(status=ended)
    run.retries("bad").then_refused(Code.RUN_CLOSED)
    run.supersedes("bad", task("good")).then_refused(Code.RUN_CLOSED)
    run.amends(max_depth=9).then_refused(Code.RUN_CLOSED)


# Retry under `fail_fast`.


def test_under_fail_fast_a_retried_task_reopens_the_run_and_what_was_stopped_opens_again() -> None:
    stopped = fail_fast(task("a"), task("b")).starts("b").fails("a", TERMINAL)
    stopped.then(AttemptFailed, like(TaskFailed, task="a"), AttemptClosed("b", 1, "run_failed"), RunFailed)
    stopped.then_state(status="failed", active={})
    again = stopped.retries("a").then(
        TaskRetried, RunReopened, like(AttemptOpened, task="a"), like(AttemptOpened, task="b", epoch=2)
    )
    done(again, "a", "b").then_state(status="succeeded")


def test_under_fail_fast_a_run_stays_failed_until_every_failed_task_is_retried() -> None:
    run = given().when(start(task("a"), task("b"), task("c")))
    both = run.fails("a", TERMINAL).fails("b", TERMINAL).amends(failure_policy="fail_fast").then_state(status="failed")
    one = both.retries("a").then(TaskRetried).then_state(status="failed", failed={"b": "worker_failed"}, active={})
    one.retries("b").then(
        TaskRetried,
        RunReopened,
        like(AttemptOpened, task="a"),
        like(AttemptOpened, task="b"),
        like(AttemptOpened, task="c"),
    )


def test_under_fail_fast_the_next_failure_ends_the_run_again() -> None:
    again = fail_fast(task("a"), task("b")).fails("a", TERMINAL).retries("a")
    again.fails("b", TERMINAL).then_state(status="failed", failed={"b": "worker_failed"}, active={})


def test_a_failed_task_that_is_not_needed_does_not_fail_the_run_again() -> None:
    run = given().when(start(task("bad"), task("a"), roots=("a",))).fails("bad", TERMINAL)
    done(run, "a").then(VerdictRecorded, TaskVerified, RunSucceeded)


def test_a_retried_task_that_fails_again_fails_the_run_again() -> None:
    FAILED.retries("a").fails("a", TERMINAL).then_state(status="failed")
    assert isinstance(FAILED.retries("a").fails("a", TERMINAL).events[-1], RunFailed)
