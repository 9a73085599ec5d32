"""What the passing of time means: leases and timeouts that end, backoffs that are over, processes that are gone."""

from __future__ import annotations

import pytest

from dagbok.events.codes import Code
from dagbok.events.run.commands import FireTimer, PauseRun, Renewal, RenewLeases, ReportGone, ResolveBlock
from dagbok.events.run.events import (
    AttemptFailed,
    AttemptLost,
    AttemptOpened,
    RunBlocked,
    RunFailed,
    TaskBackedOff,
    TaskBlocked,
    TaskFailed,
)
from dagbok.events.run.values import Limits
from dagbok.testing import CLAIM, OTHER_CLAIM, Scenario, act, candidate, given, like, run_of, start, task

RUNNING = run_of(task("a", lease_ms=1_000, timeout_ms=5_000), task("z")).starts("a")


def _fire(run: Scenario, kind: str, *, at_ms: int) -> Scenario:
    timer = FireTimer(kind, "a", run.task("a").epoch, at_ms)  # type: ignore[arg-type]
    return run.when(timer, now_ms=at_ms)


def test_a_lease_that_ran_out_loses_the_attempt_and_opens_the_next() -> None:
    lost = RUNNING.fires("lease", "a")
    lost.then(AttemptLost("a", 1, "lease_expired"), like(AttemptOpened, task="a", epoch=2, kind="work"))
    lost.then_task("a", lost=1, failures=0, status="ready")


def test_a_late_result_of_a_lost_attempt_is_refused() -> None:
    late = act.submit_outcome(RUNNING.state, "a", candidate(1))
    RUNNING.fires("lease", "a").when(late).then_refused(Code.STALE_ATTEMPT, naming="attempt 2 came after it")


def test_a_deadline_is_checked_against_the_state_and_log_time() -> None:
    _fire(RUNNING, "lease", at_ms=999).then_refused(Code.NOT_DUE, naming="1 ms after 999")
    _fire(RUNNING, "timeout", at_ms=4_999).then_refused(Code.NOT_DUE)
    renewed = RUNNING.after(900).when(RenewLeases((Renewal("a", 1, CLAIM),)))
    _fire(renewed, "lease", at_ms=1_000).then_refused(Code.NOT_DUE)
    _fire(renewed, "lease", at_ms=1_900).then(AttemptLost, AttemptOpened)


def test_a_timeout_is_a_failure_that_counts() -> None:
    renewed = RUNNING
    for _ in range(6):
        renewed = renewed.after(800).when(RenewLeases((Renewal("a", 1, CLAIM),)))
    timed_out = renewed.fires("timeout", "a")
    timed_out.then(like(AttemptFailed, task="a", epoch=1, counted=True), like(TaskBackedOff, failures=1))
    failed = timed_out.events[0]
    assert isinstance(failed, AttemptFailed)
    assert (failed.failure.code, failed.failure.message) == ("timeout", "took longer than 5000 ms")


def test_the_last_timeout_fails_the_task_with_its_code() -> None:
    run = run_of(task("a", timeout_ms=100, max_attempts=1)).starts("a")
    run.fires("timeout", "a").then(AttemptFailed, like(TaskFailed, code="timeout"), RunFailed("timeout", ("a",)))


def test_a_review_that_is_lost_is_asked_again_without_the_worker() -> None:
    review = RUNNING.submits("a", candidate(1)).starts("a")
    lost = review.fires("lease", "a")
    lost.then(AttemptLost("a", 2, "lease_expired"), like(AttemptOpened, task="a", epoch=3, kind="verify"))
    lost.then_task("a", lost=1, failures=0, verifier_errors=0, status="verifying")


def test_a_task_whose_attempts_keep_getting_lost_is_poison() -> None:
    """A limit that counts crashes: such a task stops before it takes more processes down."""
    run = given().when(start(task("a"), task("z"), limits=Limits(max_lost=3)))
    for _ in range(2):
        run = run.starts("a").fires("lease", "a").then(AttemptLost, AttemptOpened)
    poison = run.starts("a").fires("lease", "a")
    poison.then(AttemptLost, TaskFailed("a", "poison", "3 attempts were lost"))
    poison.then_task("a", status="failed", failures=0).then_state(failed={"a": "poison"})


def test_a_review_that_keeps_getting_lost_blocks_and_keeps_the_candidate() -> None:
    run = given().when(start(task("a"), limits=Limits(max_lost=2))).starts("a").submits("a", candidate(1))
    poison = run.starts("a").fires("lease", "a").starts("a").fires("lease", "a")
    poison.then(AttemptLost, like(TaskBlocked, code="poison"), RunBlocked("poison", ("a",)))
    resolved = poison.when(ResolveBlock("a"))
    resolved.then_task("a", status="verifying", lost=0).judges("a", "pass").then_task("a", status="verified")


def test_losses_do_not_use_up_attempts_nor_failures_losses() -> None:
    run = given().when(start(task("a"), limits=Limits(max_attempts=2, max_lost=2)))
    once_each = run.starts("a").fires("lease", "a").starts("a").fails("a").fires("backoff", "a")
    once_each.then_task("a", failures=1, lost=1, status="ready")


def test_backoffs_grow_with_jitter_up_to_their_limit() -> None:
    limits = Limits(max_attempts=20, backoff_base_ms=100, backoff_max_ms=1_000)
    run = given().when(start(task("a"), task("b"), limits=limits))
    delays: dict[str, list[int]] = {"a": [], "b": []}
    for id in delays:
        for _ in range(6):
            failed = run.starts(id).fails(id)
            delays[id].append(failed.task(id).due_ms - failed.now_ms)
            run = failed.fires("backoff", id)
    for waits in delays.values():
        assert all(
            full // 2 <= wait < full for full, wait in zip((100, 200, 400, 800, 1_000, 1_000), waits, strict=True)
        )
    assert delays["a"] != delays["b"], "tasks that fail together do not come back together"


def test_the_same_history_backs_off_for_the_same_time() -> None:
    """No clock and no random number: deciding again gives the same deadline."""
    assert RUNNING.fails("a").events == RUNNING.fails("a").events


def test_a_backoff_ends_when_it_is_due() -> None:
    waiting = RUNNING.fails("a")
    due_ms = waiting.task("a").due_ms
    _fire(waiting, "backoff", at_ms=due_ms - 1).then_refused(Code.NOT_DUE)
    over = _fire(waiting, "backoff", at_ms=due_ms)
    over.then(like(AttemptOpened, task="a", epoch=2, kind="work")).then_task("a", status="ready")
    over.then_state(backoffs=[])


def test_a_due_backoff_is_opened_by_whatever_comes_first() -> None:
    waiting = RUNNING.fails("a")
    later = waiting.after(60_000).submits("z", candidate(1))
    later.then_task("a", status="ready", epoch=2)
    later.when(FireTimer("backoff", "a", 1, 0)).then_refused(Code.STALE_ATTEMPT)


def test_a_due_backoff_waits_for_room() -> None:
    run = given().when(start(task("a"), task("z"), limits=Limits(max_open=1))).starts("a").fails("a")
    full = run.then_state(active={"z": None})
    waits = full.fires("backoff", "a").then_refused(Code.NOT_DUE, naming="open attempts")
    waits.submits("z", candidate(1)).judges("z", "pass").then_task("a", status="ready", epoch=2)


def test_what_a_process_held_is_lost_when_it_is_gone() -> None:
    """Claims of other processes and open attempts stay as they are."""
    run = run_of(task("a"), task("b"), task("c"), task("open")).starts("a").starts("b", claim=OTHER_CLAIM)
    run = run.starts("c").submits("c", candidate(1)).starts("c")
    gone = run.when(ReportGone(CLAIM.process))
    gone.then(
        AttemptLost("a", 1, "process_gone"),
        AttemptLost("c", 2, "process_gone"),
        like(AttemptOpened, task="c", kind="verify", epoch=3),
        like(AttemptOpened, task="a", kind="work", epoch=2),
    )
    gone.then_task("b", status="running", epoch=1)


def test_a_process_that_held_nothing_changes_nothing() -> None:
    RUNNING.when(ReportGone("process-77")).then_refused(Code.STALE_ATTEMPT)


def test_losses_of_a_gone_process_may_end_several_tasks_at_once() -> None:
    run = given().when(start(task("a"), task("b"), limits=Limits(max_lost=1))).starts("a").starts("b")
    run.when(ReportGone(CLAIM.process)).then(
        AttemptLost,
        like(TaskFailed, task="a"),
        AttemptLost,
        like(TaskFailed, task="b"),
        RunFailed("poison", ("a", "b")),
    )


@pytest.mark.parametrize("kind", ["lease", "timeout"])
def test_time_passes_in_a_paused_run_too(kind: str) -> None:
    """What runs while the run is paused keeps its deadlines; what is lost opens again on resume."""
    after = RUNNING.when(PauseRun()).fires(kind, "a")  # type: ignore[arg-type]
    assert not [event for event in after.events if isinstance(event, AttemptOpened)]
    after.then_task("a", attempt=None)
