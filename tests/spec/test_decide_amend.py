"""What a run is bound to is changed, on record."""

from __future__ import annotations

import pytest

from dagbok.events.codes import Code
from dagbok.events.run.commands import AmendRun, PauseRun, ResumeRun
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptOpened,
    DecompositionAccepted,
    RunAmended,
    RunFailed,
    RunReopened,
    RunResumed,
    TasksAdded,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import Limits, Pinned, Usage, VerifierPin
from dagbok.testing import (
    OTHER_CLAIM,
    Scenario,
    act,
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

VERIFIERS = {"check": pin(), "judge": pin("decomposition"), "other": pin()}
SECOND = {"check": pin(version="2", digest="d2")}


def _run(**pinned: VerifierPin) -> Scenario:
    return given().when(
        start(
            task("a"), task("b", verifier="other"), task("p", proposal_verifier="judge"), verifiers=VERIFIERS | pinned
        )
    )


RUN = _run()
REVIEW = RUN.submits("a", candidate(1)).submits("b", candidate(2)).submits("p", decompose(task("c")))


def test_a_verifier_gets_another_version_and_the_old_value_is_on_record() -> None:
    before = Pinned(verifiers=VERIFIERS)
    after = Pinned(verifiers=VERIFIERS | SECOND)
    RUN.when(AmendRun(SECOND, reason="stricter")).then(RunAmended(after, before, "stricter")).then_state(pinned=after)


def test_only_the_reviews_under_a_verifier_that_changes_begin_anew() -> None:
    amended = REVIEW.amends(verifiers=SECOND)
    amended.then(
        RunAmended,
        AttemptClosed("a", 2, "run_amended"),
        like(AttemptOpened, task="a", epoch=3, kind="verify", key="check"),
    )
    amended.then_task("a", failures=0, verifier_errors=0, status="verifying")
    amended.then_task("b", epoch=2).then_task("p", epoch=2)
    REVIEW.amends(verifiers={"judge": pin("decomposition", version="2")}).then(
        RunAmended, AttemptClosed("p", 2, "run_amended"), like(AttemptOpened, task="p", kind="verify", key="judge")
    )


def test_a_verdict_of_the_old_version_is_refused_and_one_of_the_new_publishes() -> None:
    old = act.submit_verdict(REVIEW.state, "a", "pass")
    amended = REVIEW.amends(verifiers=SECOND)
    amended.when(old).then_refused(Code.STALE_ATTEMPT)
    old_report = act.report(REVIEW.state, "a", "pass")
    amended.judges("a", old_report).then_refused(Code.VERDICT_MISMATCH, naming="version")
    amended.judges("a", "pass").then(VerdictRecorded, TaskVerified)


def test_a_review_that_runs_is_stopped() -> None:
    amended = REVIEW.starts("a", claim=OTHER_CLAIM).amends(verifiers=SECOND)
    amended.then(RunAmended, AttemptClosed, AttemptOpened)
    amended.starts("a").judges("a", "pass").then(VerdictRecorded, TaskVerified)


def test_work_is_not_disturbed() -> None:
    RUN.starts("a").amends(verifiers=SECOND).then(RunAmended).submits("a", candidate(1)).judges("a", "pass").then(
        VerdictRecorded, TaskVerified
    )


def test_a_review_in_backoff_is_repeated_under_the_new_version_when_its_time_comes() -> None:
    resting = REVIEW.judges("a", "error").amends(verifiers=SECOND).then(RunAmended)
    resting.fires("backoff", "a").judges("a", "pass").then(VerdictRecorded, TaskVerified)


def test_a_block_of_the_verifier_is_resolved_under_the_new_version() -> None:
    broken = REVIEW.fails("a", failure(terminal=True)).then_task("a", status="blocked").amends(verifiers=SECOND)
    broken.resolves("a").judges("a", "pass").then(VerdictRecorded, TaskVerified)


def test_a_new_verifier_may_be_named_from_then_on() -> None:
    child = task("c", verifier="late")
    RUN.submits("a", decompose(child)).then_task("a", status="blocked")
    RUN.amends(verifiers={"late": pin()}).submits("a", decompose(child)).then(
        DecompositionAccepted, TasksAdded, like(AttemptOpened, task="c")
    )


def test_what_is_not_named_stays() -> None:
    RUN.amends(max_depth=3).amends(failure_policy="fail_fast").amends(max_decompositions=4).then_state(
        pinned=Pinned(verifiers=VERIFIERS, failure_policy="fail_fast", max_depth=3, max_decompositions=4)
    )


def test_a_verifier_judges_at_least_what_it_judged() -> None:
    """Else a staged candidate or proposal would have no judge."""
    both = _run(check=pin("candidate", "decomposition"))
    both.amends(verifiers={"check": pin("candidate")}).then_refused(Code.CONFIG_MISMATCH, naming="decomposition")
    both.amends(verifiers={"check": pin("decomposition")}).then_refused(Code.CONFIG_MISMATCH, naming="candidate")
    RUN.amends(verifiers={"check": pin("candidate", "decomposition")}).then(RunAmended)


def test_a_verifier_that_begins_to_judge_decompositions_judges_the_next_one() -> None:
    """What is staged keeps the judge that it had."""
    amended = REVIEW.amends(verifiers={"check": pin("candidate", "decomposition")})
    amended.then(RunAmended, AttemptClosed("a", 2, "run_amended"), like(AttemptOpened, task="a", key="check"))
    amended.judges("p", act.report(amended.state, "p", "pass")).then_task("p", status="waiting")


@pytest.mark.parametrize(
    ("command", "code", "named"),
    [
        (AmendRun(), Code.VERSION_CONFLICT, "already"),
        (AmendRun({"check": pin()}), Code.VERSION_CONFLICT, "already"),
        (AmendRun(max_depth=8), Code.VERSION_CONFLICT, "already"),
        (AmendRun(max_depth=0), Code.INVALID_SPEC, "max_depth"),
        (AmendRun(max_depth=-1), Code.INVALID_SPEC, "max_depth"),
        (AmendRun(max_decompositions=2**60), Code.INVALID_SPEC, "max_decompositions"),
        (AmendRun({"structure": pin("decomposition")}), Code.INVALID_SPEC, "structure"),
    ],
)
def test_an_amendment_that_changes_nothing_or_says_nonsense_is_refused(
    command: AmendRun, code: Code, named: str
) -> None:
    RUN.when(command).then_refused(code, naming=named)


def test_the_same_start_with_the_new_values_is_a_repeat() -> None:
    """So is the first one. A start with values that the run was never bound to is another one."""
    tasks = (task("a"), task("b", depends_on=("a",)))
    run = given().when(start(*tasks)).amends(verifiers=SECOND)
    run.when(start(*tasks, verifiers=SECOND)).then_repeated(of=0)
    run.when(start(*tasks)).then_repeated(of=0)
    run.when(start(*tasks, verifiers={"check": pin(version="3")})).then_refused(Code.CONFIG_MISMATCH, naming="check")
    run.when(start(*tasks, verifiers=SECOND, max_depth=3)).then_refused(Code.CONFIG_MISMATCH, naming="max_depth")
    run.when(start(*tasks[:1], verifiers=SECOND)).then_refused(Code.CONFIG_MISMATCH)
    run.when(start(*tasks, verifiers=SECOND, roots=("a", "b"))).then_refused(Code.CONFIG_MISMATCH, naming="roots")


def test_the_order_in_which_verifiers_are_named_is_no_difference() -> None:
    first = given().when(start(task("a"), verifiers={"check": pin(), "other": pin()}))
    first.when(start(task("a"), verifiers={"other": pin(), "check": pin()})).then_repeated(of=0)


def test_a_run_becomes_fail_fast_and_ends_if_a_task_has_failed() -> None:
    failed = RUN.fails("a", failure(terminal=True)).then_state(status="running")
    failed.amends(failure_policy="fail_fast").then(
        RunAmended,
        AttemptClosed("b", 1, "run_failed"),
        AttemptClosed("p", 1, "run_failed"),
        RunFailed("worker_failed", ("a",)),
    )


def test_a_run_that_failed_is_amended_before_it_is_repaired() -> None:
    run = given().when(start(task("a"), task("b"), failure_policy="fail_fast")).fails("a", failure(terminal=True))
    run.amends(verifiers=SECOND).then(RunAmended).then_state(status="failed", active={}).retries("a").submits(
        "a", candidate(1)
    ).judges("a", "pass").then(VerdictRecorded, TaskVerified)


def test_a_paused_run_is_amended_and_its_reviews_open_when_it_is_resumed() -> None:
    paused = REVIEW.when(PauseRun()).amends(verifiers=SECOND).then(RunAmended, AttemptClosed)
    paused.when(ResumeRun()).then(RunResumed, like(AttemptOpened, task="a", kind="verify"))


def test_a_blocked_run_is_amended_and_stays_blocked() -> None:
    stuck = given().when(start(task("a"))).submits("a", blocked()).amends(max_depth=9)
    stuck.then(RunAmended).then_state(status="blocked")


def test_depth_and_decompositions_are_those_of_now() -> None:
    flat = given().when(start(task("a"), max_depth=1, verifiers=VERIFIERS)).submits("a", decompose(task("b")))
    flat.submits("b", decompose(task("c"))).then_task("b", status="blocked")
    flat.amends(max_depth=2).submits("b", decompose(task("c"))).then_task("b", status="waiting")


def test_a_run_that_failed_at_its_first_failure_goes_on_when_it_may_go_on_after_one() -> None:
    run = given().when(start(task("a"), task("b"), failure_policy="fail_fast"))
    failed = run.fails("a", failure(terminal=True)).then_state(status="failed")
    reopened = failed.amends(failure_policy="continue_independent")
    reopened.then(RunAmended, RunReopened, like(AttemptOpened, task="b")).then_state(status="running")
    reopened.submits("b", candidate(1)).judges("b", "pass").then_state(status="failed")


def test_a_blocked_run_that_becomes_fail_fast_ends_if_a_task_has_failed() -> None:
    """Nobody has to resolve a block in a run that one failure ends."""
    run = given().when(start(task("a"), task("b"))).fails("a", failure(terminal=True)).submits("b", blocked())
    run.then_state(status="blocked").amends(failure_policy="fail_fast").then(
        RunAmended, RunReopened, RunFailed("worker_failed", ("a",))
    ).then_state(status="failed", blocked_by="")


def test_a_run_without_means_that_becomes_fail_fast_ends_if_a_task_has_failed() -> None:
    tasks = (task("a"), task("b"))
    run = given().when(start(*tasks, limits=Limits(max_tokens=5))).fails("a", failure(terminal=True), usage=Usage(5))
    run.releases("b").then_state(status="blocked", exhausted=True)
    run.amends(failure_policy="fail_fast").then_state(status="failed", exhausted=False)


def test_a_failed_run_with_nothing_left_to_do_stays_so_whatever_is_amended() -> None:
    failed = given().when(start(task("a"), failure_policy="fail_fast")).fails("a", failure(terminal=True))
    failed.amends(failure_policy="continue_independent").then(RunAmended).then_state(status="failed")
