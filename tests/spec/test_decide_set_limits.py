"""Limits of a run that goes on: budgets that it did not have, and limits that are changed by name."""

from __future__ import annotations

import pytest

from dagbok.events.codes import Code
from dagbok.events.run.commands import PauseRun, SetLimits
from dagbok.events.run.events import AttemptClosed, LimitsSet, RunBlocked, RunReopened
from dagbok.events.run.values import ArtifactItem, Candidate
from dagbok.testing import Limits, Scenario, Usage, blocked, candidate, failure, given, like, run_of, start, task
from tests.spec.steps import done, limited, reserving

MEBIBYTE = 1024**2


def costly() -> Scenario:
    """Without a budget. 70 tokens and 0.7 are used, 30 tokens and 0.3 are reserved by what runs; then comes `late`."""
    tasks = (reserving("first", 70, "0.7"), reserving("runs", 30, "0.3"), task("late", depends_on=("runs",)))
    run = given().when(start(*tasks)).starts("runs")
    return run.submits("first", candidate(1), usage=Usage(70, "0.7")).judges("first", "pass")


# A limit where there was none.


@pytest.mark.parametrize("lid", [Limits(max_tokens=100), Limits(max_cost="1")])
def test_a_run_without_a_budget_gets_one_and_is_held_to_it(lid: Limits) -> None:
    """Who sees the cost of a run grow can put a lid on it. What runs is within it, and may finish."""
    run = costly().when(SetLimits(lid)).then(LimitsSet(lid, Limits()))
    spent = run.submits("runs", candidate(1), usage=Usage(30, "0.3")).judges("runs", "pass")
    spent.then_state(status="blocked", blocked_by="budget_exhausted").then_task("late", status="ready")


def test_a_budget_that_leaves_something_lets_the_run_go_on() -> None:
    done(costly().when(SetLimits(Limits(max_tokens=101, max_cost="1.01"))), "runs", "late").then_state(
        status="succeeded"
    )


@pytest.mark.parametrize(
    ("lid", "said"),
    [
        (Limits(max_tokens=99), "max_tokens would be below the tokens used (70) and reserved (30)"),
        (Limits(max_cost="0.99"), "max_cost would be below the cost used (0.7) and reserved (0.3)"),
        (Limits(max_wall_ms=4_999), "max_wall_ms would be below the 5000 ms since the start"),
        (Limits(max_tokens=99, max_cost="0.1"), "reserved (30); max_cost would be below"),
    ],
)
def test_a_budget_does_not_begin_below_what_is_used_and_reserved(lid: Limits, said: str) -> None:
    """What was accepted when there was no limit stays within the limit that there is from now on."""
    costly().after(5_000).when(SetLimits(lid)).then_refused(Code.BUDGET_EXHAUSTED, naming=said)


def test_the_refusal_advises_the_least_that_it_may_be() -> None:
    refused = costly().when(SetLimits(Limits(max_tokens=1, max_cost="0.5"))).answer
    assert getattr(refused, "advice", "") == "name at least max_tokens=100, max_cost=1"


def test_once_it_stands_a_budget_only_grows() -> None:
    lid = costly().when(SetLimits(Limits(max_tokens=500, max_cost="5")))
    lid.when(SetLimits(Limits(max_tokens=499))).then_refused(Code.CONFIG_MISMATCH, naming="max_tokens stands at 500")
    lid.when(SetLimits(Limits(max_cost="4.99"))).then_refused(Code.CONFIG_MISMATCH, naming="max_cost stands at 5")
    lid.when(SetLimits(Limits(max_tokens=501))).then(
        like(LimitsSet, limits=Limits(max_tokens=501, max_cost="5"), before=Limits(max_tokens=500, max_cost="5"))
    )


def test_a_run_gets_an_end_of_its_time_from_its_start() -> None:
    ends = costly().after(5_000).when(SetLimits(Limits(max_wall_ms=8_000))).then(LimitsSet)
    ends.fires("wall").then(
        AttemptClosed("runs", 1, "budget_exhausted", Usage(30, "0.3")), RunBlocked("budget_exhausted", ())
    )


def test_time_that_is_just_over_ends_the_run_at_once() -> None:
    over = costly().after(5_000).when(SetLimits(Limits(max_wall_ms=5_000)))
    over.then(LimitsSet, AttemptClosed, RunBlocked("budget_exhausted", ()))


def test_all_that_candidates_handed_over_counts_when_artifacts_get_a_limit() -> None:
    large = Candidate((ArtifactItem("part", "0" * 64, MEBIBYTE, "text/plain"),))
    run = run_of(task("a"), task("b")).submits("a", large)
    too_low = Limits(max_total_artifact_bytes=MEBIBYTE - 1)
    run.when(SetLimits(too_low)).then_refused(Code.BUDGET_EXHAUSTED, naming=f"the {MEBIBYTE} bytes of its artifacts")
    full = run.when(SetLimits(Limits(max_total_artifact_bytes=MEBIBYTE))).then(LimitsSet)
    full.submits("b", candidate(1)).then_task("b", status="blocked")


def test_what_a_worker_is_handed_may_be_limited_at_any_time() -> None:
    """It is measured for each attempt: what runs was handed more, and finishes."""
    run = run_of(task("a"), task("b", contract="x" * 100, depends_on=("a",))).starts("a")
    small = run.when(SetLimits(Limits(max_context_bytes=20))).then(LimitsSet)
    done(small, "a").then_task("b", status="blocked")


@pytest.mark.parametrize("stands", ["paused", "blocked", "failed"])
def test_a_run_that_stands_still_takes_a_budget_too(stands: str) -> None:
    run = run_of(task("a"))
    still = {
        "paused": run.fails("a", usage=Usage(70)).when(PauseRun()),
        "blocked": run.submits("a", blocked(), usage=Usage(70)),
        "failed": run.fails("a", failure(terminal=True), usage=Usage(70)),
    }[stands].then_state(status=stands)
    still.when(SetLimits(Limits(max_tokens=69))).then_refused(Code.BUDGET_EXHAUSTED)
    still.when(SetLimits(Limits(max_tokens=70))).then_state(limits=Limits(max_tokens=70), status=stands)


# Limits by name.


def test_the_named_limits_change_and_the_others_stay() -> None:
    """Whatever the others are: above or below the defaults, which a whole set of limits would name too."""
    run = limited(task("a"), tokens=100, max_open=5, max_attempts=9)
    named = run.when(SetLimits(Limits(max_tokens=200), ("max_tokens",)))
    named.then_state(limits=Limits(max_tokens=200, max_open=5, max_attempts=9))
    run.when(SetLimits(Limits(max_tokens=200))).then_refused(Code.CONFIG_MISMATCH, naming="max_attempts stands at 9")


def test_a_limit_is_raised_to_its_default_by_its_name() -> None:
    run = limited(task("a"), max_open=5)
    run.when(SetLimits(Limits(), ("max_open",))).then_state(limits=Limits())


def test_a_named_limit_that_is_none_stays() -> None:
    run = limited(task("a"), tokens=100)
    run.when(SetLimits(Limits(max_open=2_000), ("max_tokens", "max_open"))).then_state(
        limits=Limits(max_open=2_000, max_tokens=100)
    )


@pytest.mark.parametrize(("named", "said"), [(("max_tasks", "tokens"), "no limits: tokens"), ((), "no limit is named")])
def test_names_that_are_no_limits_are_refused(named: tuple[str, ...], said: str) -> None:
    limited(task("a")).when(SetLimits(Limits(), named)).then_refused(Code.INVALID_SPEC, naming=said)


def test_a_blocked_run_goes_on_when_the_budget_is_raised_by_name() -> None:
    stuck = limited(reserving("a", 60), tokens=50, max_open=5).then_state(status="blocked")
    stuck.when(SetLimits(Limits(max_tokens=60), ("max_tokens",))).then_state(status="running", active={"a": None})
    assert RunReopened("its limits are raised") in stuck.when(SetLimits(Limits(max_tokens=60), ("max_tokens",))).events
