"""What a verifier says. Only a passing report that is bound to this very review publishes."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.run.commands import ResolveBlock
from dagbok.events.run.events import (
    AttemptOpened,
    RunBlocked,
    RunFailed,
    RunReopened,
    RunSucceeded,
    TaskBackedOff,
    TaskBlocked,
    TaskFailed,
    TaskUnblocked,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import Limits, Report
from dagbok.testing import (
    CLAIM,
    OTHER_CLAIM,
    Scenario,
    act,
    candidate,
    decompose,
    given,
    like,
    pin,
    run_of,
    start,
    task,
)

REVIEW = run_of(task("a"), task("b", depends_on=("a",))).starts("a").submits("a", candidate(1, outputs={"n": 1}))
DIAGNOSTICS = msgspec.Raw(b'{"line":3}')


def test_a_pass_publishes_and_wakes_what_waited() -> None:
    report = act.report(REVIEW.state, "a", "pass")
    report_id = sha256_hex(msgspec.json.encode(report))
    passed = REVIEW.judges("a", report)
    passed.then(
        VerdictRecorded("a", 2, CLAIM, report_id, report),
        TaskVerified("a", report_id),
        like(AttemptOpened, task="b", kind="work"),
    )
    staged = REVIEW.task("a").staged
    assert staged is not None
    passed.then_task("a", status="verified", published=staged.artifacts, outputs=staged.outputs, staged=None)
    passed.then_task("b", status="ready", open_deps=0)


def test_a_review_needs_no_claim_before() -> None:
    REVIEW.judges("a", "pass", claim=OTHER_CLAIM).then(
        like(VerdictRecorded, claim=OTHER_CLAIM), TaskVerified, AttemptOpened
    )


def test_a_claimed_review_is_judged_by_its_holder() -> None:
    claimed = REVIEW.starts("a")
    claimed.judges("a", "pass", claim=OTHER_CLAIM).then_refused(Code.LEASE_REJECTED)
    claimed.judges("a", "pass").then(VerdictRecorded, TaskVerified, AttemptOpened)
    claimed.after(60_000).judges("a", "pass").then_refused(Code.LEASE_REJECTED, naming="ended")


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("kind", "decomposition", "kind"),
        ("verifier", "other", "verifier"),
        ("version", "2", "version"),
        ("digest", "d2", "config digest"),
        ("assurance", "formal", "assurance"),
        ("input_hash", "0" * 64, "input hash"),
        ("subject", (), "candidate hashes"),
        ("subject", ("0" * 64,), "candidate hashes"),
    ],
)
@pytest.mark.parametrize("verdict", ["pass", "fail", "inconclusive", "error"])
def test_a_report_is_bound_to_its_review_field_by_field(field: str, value: object, named: str, verdict: str) -> None:
    report = msgspec.structs.replace(act.report(REVIEW.state, "a", "pass"), **{field: value, "verdict": verdict})
    REVIEW.judges("a", report).then_refused(Code.VERDICT_MISMATCH, naming=named)
    REVIEW.judges("a", report).then_task("a", status="verifying", published=())


def test_every_field_of_a_report_that_binds_is_compared() -> None:
    """A new field of a report is either compared when it is decided, or said here to bind nothing."""
    compared = {"kind", "verifier", "version", "digest", "assurance", "input_hash", "subject"}
    assert set(Report.__struct_fields__) - {"verdict", "diagnostics", "evidence"} == compared


def test_the_order_of_artifacts_is_part_of_what_is_judged() -> None:
    report = act.report(REVIEW.state, "a", "pass")
    swapped = msgspec.structs.replace(report, subject=tuple(reversed(report.subject)))
    REVIEW.judges("a", swapped).then_refused(Code.VERDICT_MISMATCH)


def test_a_report_on_an_earlier_candidate_publishes_nothing() -> None:
    old = act.report(REVIEW.state, "a", "pass")
    again = REVIEW.judges("a", "fail").fires("backoff", "a").starts("a").submits("a", candidate(2))
    again.judges("a", old).then_refused(Code.VERDICT_MISMATCH)


def test_a_report_on_a_proposal_does_not_publish_a_candidate() -> None:
    verifiers = {"check": pin("candidate", "decomposition")}
    proposed = given().when(start(task("a"), verifiers=verifiers)).starts("a").submits("a", decompose(task("b")))
    on_proposal = act.report(proposed.state, "a", "pass")
    again = proposed.judges("a", "fail").fires("backoff", "a").starts("a").submits("a", candidate(1))
    again.judges("a", on_proposal).then_refused(Code.VERDICT_MISMATCH, naming="kind")


def test_a_fail_spends_an_attempt_and_its_diagnostics_reach_the_next_one() -> None:
    report = act.report(REVIEW.state, "a", "fail", diagnostics=DIAGNOSTICS)
    failed = REVIEW.judges("a", report)
    failed.then(like(VerdictRecorded, report=report), like(TaskBackedOff, task="a", failures=1))
    failed.then_task("a", status="backoff", failures=1, staged=None, published=())
    other = REVIEW.judges("a", "fail")
    hashes = {
        attempt.input_hash
        for run in (REVIEW, failed.fires("backoff", "a"), other.fires("backoff", "a"))
        if (attempt := run.task("a").attempt) is not None
    }
    assert len(hashes) == 3


def test_the_last_fail_fails_the_task_and_says_why() -> None:
    run = given().when(start(task("a"), limits=Limits(max_attempts=1))).starts("a").submits("a", candidate(1))
    report = act.report(run.state, "a", "fail", diagnostics=DIAGNOSTICS)
    run.judges("a", report).then(
        VerdictRecorded,
        TaskFailed("a", "verification_failed", 'verifier check: {"line":3} (attempt 1 of 1)'),
        RunFailed("verification_failed", ("a",)),
    )


def test_an_inconclusive_verdict_blocks_and_the_worker_runs_again_when_it_is_resolved() -> None:
    blocked = REVIEW.judges("a", "inconclusive")
    blocked.then(VerdictRecorded, like(TaskBlocked, task="a", code="inconclusive"), RunBlocked("inconclusive", ("a",)))
    blocked.then_task("a", status="blocked", failures=0, staged=None)
    blocked.when(ResolveBlock("a")).then_task("a", status="ready").starts("a").submits("a", candidate(2)).judges(
        "a", "pass"
    ).then(VerdictRecorded, TaskVerified, AttemptOpened)


def test_an_error_of_the_verifier_asks_it_again_after_a_backoff_and_not_the_worker() -> None:
    resting = REVIEW.judges("a", "error")
    resting.then(VerdictRecorded, like(TaskBackedOff, task="a", failures=0, review=True))
    resting.then_task("a", status="backoff", failures=0, verifier_errors=1, staged=REVIEW.task("a").staged)
    again = resting.fires("backoff", "a").then(like(AttemptOpened, task="a", epoch=3, kind="verify"))
    again.then_task("a", status="verifying")
    first, second = REVIEW.task("a").attempt, again.task("a").attempt
    assert first is not None
    assert second is not None
    assert first.input_hash == second.input_hash
    again.judges("a", "pass").then_task("a", status="verified")


def test_the_verifier_rests_longer_after_each_error() -> None:
    def pauses_ms(run: Scenario) -> list[int]:
        pauses = []
        for _ in range(4):
            run = run.judges("a", "error")
            pauses.append(run.task("a").due_ms - run.now_ms)
            run = run.fires("backoff", "a")
        return pauses

    limits = Limits(max_verifier_errors=9, backoff_base_ms=1_000, backoff_max_ms=4_000)
    review = given().when(start(task("a"), limits=limits)).starts("a").submits("a", candidate(1))
    least = [500, 1_000, 2_000, 2_000]
    assert all(low <= pause <= 2 * low for low, pause in zip(least, pauses_ms(review), strict=True))


def _errs(run: Scenario, times: int) -> Scenario:
    for _ in range(times):
        run = run.judges("a", "error").fires("backoff", "a")
    return run


def test_the_third_error_blocks_and_resolving_asks_the_verifier_again() -> None:
    """The candidate stays staged: the worker did nothing wrong and does not run again."""
    blocked = _errs(REVIEW, 2).judges("a", "error")
    blocked.then(VerdictRecorded, like(TaskBlocked, code="verifier_error"), RunBlocked("verifier_error", ("a",)))
    resolved = blocked.when(ResolveBlock("a", "mended"))
    resolved.then(TaskUnblocked, RunReopened, like(AttemptOpened, task="a", kind="verify"))
    resolved.then_task("a", status="verifying", verifier_errors=0)
    resolved.judges("a", "pass").then(VerdictRecorded, TaskVerified, AttemptOpened)


def test_errors_are_counted_for_each_candidate() -> None:
    erring = _errs(REVIEW, 2).judges("a", "fail")
    again = erring.fires("backoff", "a").starts("a").submits("a", candidate(2))
    again.judges("a", "error").then_task("a", verifier_errors=1, status="backoff")


def test_the_verdict_that_ends_the_run_ends_it_in_the_same_commit() -> None:
    run_of(task("a")).starts("a").submits("a", candidate(1)).judges("a", "pass").then(
        VerdictRecorded, TaskVerified, RunSucceeded()
    ).then_state(status="succeeded", open_roots=0)


def test_a_verdict_comes_once_whatever_became_of_the_task() -> None:
    command = act.submit_verdict(REVIEW.state, "a", "pass")
    passed = REVIEW.when(command, id="once")
    passed.when(command, id="once").then_repeated(of=3)
    passed.when(command, id="another").then_refused(Code.STALE_ATTEMPT)


def test_two_verdicts_on_one_candidate_the_first_counts() -> None:
    fail = act.submit_verdict(REVIEW.state, "a", "fail", claim=OTHER_CLAIM)
    REVIEW.judges("a", "pass").when(fail).then_refused(Code.STALE_ATTEMPT).then_task("a", status="verified")


@pytest.mark.parametrize("field", ["diagnostics", "evidence"])
@pytest.mark.parametrize("text", [b'"\xff"', b"1e999", b'"\\udfff"', b"NaN"])
@pytest.mark.parametrize("verdict", ["pass", "fail", "inconclusive", "error"])
def test_a_report_that_cannot_be_read_later_is_refused_whole(field: str, text: bytes, verdict: str) -> None:
    report = msgspec.structs.replace(
        act.report(REVIEW.state, "a", "pass"), **{field: msgspec.Raw(text), "verdict": verdict}
    )
    REVIEW.judges("a", report).then_refused(Code.INVALID_OUTCOME, naming=field)


def test_diagnostics_are_shown_in_the_reason_up_to_a_length() -> None:
    report = act.report(REVIEW.state, "a", "inconclusive", diagnostics=msgspec.Raw(b'"' + b"d" * 2_000 + b'"'))
    event = REVIEW.judges("a", report).events[1]
    assert isinstance(event, TaskBlocked)
    assert len(event.reason) < 600
    assert event.reason.startswith('verifier check: "ddd')
