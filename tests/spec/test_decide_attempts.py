"""Claims, leases, hand-backs, rejections and failures of attempts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.commands import RejectAttempt, Renewal, RenewLeases, StartAttempt
from dagbok.events.run.events import (
    AttemptFailed,
    AttemptOpened,
    AttemptReleased,
    AttemptStarted,
    AttemptUnserved,
    LeasesRenewed,
    RenewedLease,
    TaskBackedOff,
    TaskBlocked,
    TaskFailed,
)
from dagbok.events.run.values import Claim, Failure, Limits
from dagbok.testing import (
    CLAIM,
    OTHER_CLAIM,
    Scenario,
    act,
    blocked,
    candidate,
    failure,
    given,
    like,
    run_of,
    start,
    task,
)


def test_the_first_claim_binds_the_epoch() -> None:
    opened = run_of(task("a", lease_ms=5_000, timeout_ms=9_000)).after(100)
    opened.when(StartAttempt("a", 1, CLAIM, reply_to="inbox-7")).then(
        AttemptStarted("a", 1, CLAIM, lease_until_ms=5_100, timeout_at_ms=9_100, reply_to="inbox-7")
    ).then_task("a", status="running")


def test_a_review_has_a_lease_but_no_timeout() -> None:
    review = run_of(task("a", lease_ms=5_000, timeout_ms=9_000)).starts("a").submits("a", candidate(1))
    review.starts("a").then(AttemptStarted("a", 2, CLAIM, lease_until_ms=5_000)).then_task("a", status="verifying")


@pytest.mark.parametrize(
    "other",
    [
        OTHER_CLAIM,
        Claim(CLAIM.process, CLAIM.start + 1, CLAIM.nonce),
        Claim(CLAIM.process, CLAIM.start, "another nonce"),
    ],
)
def test_a_claim_is_the_process_the_start_and_the_nonce(other: Claim) -> None:
    """A process that was restarted, or a second start in one process, does not hold what the first one claimed."""
    running = run_of(task("a")).starts("a")
    running.starts("a", claim=other).then_refused(Code.ATTEMPT_CLAIMED)
    running.submits("a", candidate(1), claim=other).then_refused(Code.LEASE_REJECTED, naming=CLAIM.process)


def test_an_outcome_after_the_lease_is_refused_even_before_its_timer() -> None:
    running = run_of(task("a", lease_ms=1_000)).starts("a")
    running.after(999).submits("a", candidate(1)).then_task("a", status="verifying")
    running.after(1_000).submits("a", candidate(1)).then_refused(Code.LEASE_REJECTED, naming="ended 0 ms ago")
    running.after(1_000).fails("a").then_refused(Code.LEASE_REJECTED)
    running.after(1_000).releases("a").then_refused(Code.LEASE_REJECTED)


def test_who_names_an_attempt_that_is_not_the_present_one_is_told_why() -> None:
    """Over by another attempt, over with the task, or never there: the last is a mistake of who asks."""
    again = run_of(task("a"), task("z")).starts("a").releases("a").then_task("a", epoch=2)
    present = act.submit_outcome(again.state, "a", candidate(1))
    first, unknown = (msgspec.structs.replace(present, epoch=epoch) for epoch in (1, 7))
    again.when(first).then_refused(Code.STALE_ATTEMPT, naming="attempt 1 of task a is over: attempt 2 came after it")
    ended = again.starts("a").submits("a", blocked())
    ended.when(present).then_refused(Code.STALE_ATTEMPT, naming="attempt 2 of task a is over: the task is blocked")
    never = again.when(unknown).then_refused(
        Code.STALE_ATTEMPT, naming="there is no attempt 7 of task a: its last is 2"
    )
    assert isinstance(never.answer, Refused)
    assert "name the epoch that the dispatch names" in never.answer.advice


def test_leases_are_renewed_each_by_itself() -> None:
    run = run_of(task("a", lease_ms=1_000), task("b", lease_ms=2_000), task("c"), task("d"), task("e"))
    held = run.starts("a").starts("b").starts("c", claim=OTHER_CLAIM).starts("e").submits("e", candidate(1)).after(500)
    renewals = [Renewal(id, 1, CLAIM) for id in ("a", "b", "c", "d", "e", "nobody")]
    held.when(RenewLeases(tuple(renewals))).then(
        LeasesRenewed(
            accepted=(RenewedLease("a", 1, 1_500), RenewedLease("b", 1, 2_500)),
            refused=(("c", 1), ("d", 1), ("e", 1), ("nobody", 1)),
        )
    )


def test_a_task_of_three_leases_is_renewed_and_accepted_once() -> None:
    long = run_of(task("a", lease_ms=1_000)).starts("a")
    for _ in range(3):
        long = long.after(900).when(RenewLeases((Renewal("a", 1, CLAIM),))).then(LeasesRenewed)
    long.after(900).submits("a", candidate(1)).then_task("a", status="verifying", lost=0)


def test_a_lease_that_ended_is_not_renewed() -> None:
    running = run_of(task("a", lease_ms=1_000)).starts("a")
    running.after(1_000).when(RenewLeases((Renewal("a", 1, CLAIM),))).then_refused(Code.LEASE_REJECTED)
    running.when(RenewLeases(())).then_refused(Code.LEASE_REJECTED)


def test_an_attempt_is_handed_back_and_nothing_is_counted() -> None:
    released = run_of(task("a")).starts("a").releases("a")
    released.then(AttemptReleased("a", 1), like(AttemptOpened, task="a", epoch=2, kind="work"))
    released.then_task("a", failures=0, lost=0, verifier_errors=0, status="ready")


def test_a_review_is_handed_back_and_asked_again_without_the_worker() -> None:
    review = run_of(task("a")).starts("a").submits("a", candidate(1)).starts("a")
    review.releases("a").then(AttemptReleased("a", 2), like(AttemptOpened, task="a", epoch=3, kind="verify"))


def test_the_same_hand_back_does_not_close_the_next_attempt() -> None:
    """Its epoch names the attempt that it closed, and so does its id."""
    running = run_of(task("a")).starts("a")
    release = act.release_attempt(running.state, "a")
    released = running.when(release, id="once")
    released.when(release, id="once").then_repeated(of=2)
    released.when(release, id="twice").then_refused(Code.STALE_ATTEMPT)


def test_an_attempt_that_nobody_serves_stays_open_visibly() -> None:
    opened = run_of(task("a"))
    rejected = opened.when(RejectAttempt("a", 1, "process-9", serves=("x", "y")))
    rejected.then(AttemptUnserved("a", 1, "process-9", ("x", "y"))).then_state(active={"a": None})
    twice = rejected.when(RejectAttempt("a", 1, "process-8"))
    node = twice.task("a")
    assert node.attempt is not None
    assert node.attempt.unserved == 2
    twice.starts("a").then(AttemptStarted)


def test_rejections_of_two_processes_are_told_apart_when_they_are_repeated() -> None:
    one, other = RejectAttempt("a", 1, "p1"), RejectAttempt("a", 1, "p2")
    both = run_of(task("a")).when(one, id="r1").when(other, id="r2")
    both.when(one, id="r1").then_repeated(of=1)
    both.when(other, id="r2").then_repeated(of=2)
    both.when(one, id="r3").then(AttemptUnserved)


def test_a_retryable_failure_backs_off() -> None:
    failed = run_of(task("a")).starts("a").fails("a", failure("no disk"))
    failed.then(
        AttemptFailed("a", 1, Failure("retryable", "worker_failed", "ValueError", "no disk"), counted=True),
        like(TaskBackedOff, task="a", failures=1),
    )
    failed.then_task("a", status="backoff", failures=1, attempt=None)


def test_a_terminal_failure_ends_the_task_at_once() -> None:
    """Deterministic failures are not retried."""
    failed = run_of(task("a"), task("z")).starts("a").fails("a", failure("bad input", terminal=True))
    failed.then(AttemptFailed, TaskFailed("a", "worker_failed", "ValueError: bad input"))
    failed.then_state(failed={"a": "worker_failed"})


@pytest.mark.parametrize(("own", "of_the_run", "allowed"), [(None, 2, 2), (1, 2, 1), (4, 2, 4)])
def test_the_last_failure_fails_the_task(own: int | None, of_the_run: int, allowed: int) -> None:
    spec = task("a", max_attempts=own)
    run = given().when(start(spec, task("z"), limits=Limits(max_attempts=of_the_run)))
    for _ in range(allowed - 1):
        run = run.starts("a").fails("a").then(AttemptFailed, TaskBackedOff).fires("backoff", "a")
    run.starts("a").fails("a", failure("still broken")).then(
        AttemptFailed, TaskFailed("a", "worker_failed", f"ValueError: still broken (attempt {allowed} of {allowed})")
    )


def test_a_failure_without_a_type_reads_well() -> None:
    nameless = Failure("terminal", "worker_failed", "", "gone")
    run_of(task("a"), task("z")).starts("a").fails("a", nameless).then(
        AttemptFailed, TaskFailed("a", "worker_failed", "gone")
    )


def test_a_long_failure_is_cut_where_it_says_least() -> None:
    """The beginning of a message and the end of a traceback tell what happened."""
    long = Failure("retryable", "worker_failed", "ValueError", "m" * 9_000 + "!", "t" * 99_000 + "cause")
    event = run_of(task("a")).starts("a").fails("a", long).events[0]
    assert isinstance(event, AttemptFailed)
    assert len(event.failure.message) == 4_000
    assert len(event.failure.traceback) == 16_000
    assert event.failure.traceback.endswith("cause")


def test_the_cause_of_a_failure_is_part_of_the_next_input() -> None:
    hashes = []
    for message in ("one", "two"):
        again = run_of(task("a")).starts("a").fails("a", failure(message)).fires("backoff", "a")
        attempt = again.task("a").attempt
        assert attempt is not None
        hashes.append(attempt.input_hash)
    assert hashes[0] != hashes[1]


def test_a_verifier_that_breaks_is_asked_again_after_a_backoff_and_the_worker_is_not() -> None:
    review = run_of(task("a")).starts("a").submits("a", candidate(1)).starts("a")
    resting = review.fails("a", failure("verifier broke"))
    resting.then(like(AttemptFailed, counted=False), like(TaskBackedOff, task="a", failures=0, review=True))
    resting.then_task("a", failures=0, verifier_errors=1, status="backoff")
    again = resting.fires("backoff", "a").then(like(AttemptOpened, task="a", epoch=3, kind="verify"))
    again.judges("a", "pass").then_task("a", status="verified", failures=0)


def test_the_third_error_of_a_verifier_blocks_the_task() -> None:
    review = run_of(task("a"), task("z")).starts("a").submits("a", candidate(1))
    twice = review.fails("a").fires("backoff", "a").fails("a").fires("backoff", "a")
    twice.fails("a").then(AttemptFailed, like(TaskBlocked, task="a", code="verifier_error")).then_task(
        "a", status="blocked", failures=0
    ).then_state(reviews=[])


def test_a_verifier_that_would_break_every_time_is_not_asked_again() -> None:
    review = run_of(task("a"), task("z")).starts("a").submits("a", candidate(1))
    blocked = review.fails("a", failure("broken", terminal=True))
    blocked.then(AttemptFailed, like(TaskBlocked, task="a", code="verifier_error"))
    blocked.then_task("a", status="blocked", failures=0).then_state(reviews=[])


def test_a_failure_of_an_attempt_that_was_never_claimed_closes_it() -> None:
    """A pure worker that fails in its first seconds has sent no claim."""
    run_of(task("a")).fails("a").then(AttemptFailed, TaskBackedOff)


def test_epochs_grow_over_all_kinds_of_ends() -> None:
    run = run_of(task("a", lease_ms=1_000), task("z"))
    seen = [run.task("a").epoch]
    for step in ENDS:
        run = step(run)
        seen.append(run.task("a").epoch)
    assert seen == [1, 2, 3, 4, 5, 6, 7]


def _backs_off(run: Scenario) -> Scenario:
    return run.starts("a").fails("a").fires("backoff", "a")


ENDS: tuple[Callable[[Scenario], Scenario], ...] = (
    lambda run: run.starts("a").releases("a"),
    lambda run: run.starts("a").fires("lease", "a"),
    _backs_off,
    lambda run: run.submits("a", candidate(1)),
    lambda run: run.judges("a", "error").fires("backoff", "a"),
    lambda run: run.judges("a", "fail").fires("backoff", "a"),
)
