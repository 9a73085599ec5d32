"""Budgets of tokens and cost: what is reserved, what is charged, and how it is added up."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from dagbok.events.codes import Code
from dagbok.events.run.amounts import MAX_TOKENS, minus, plus
from dagbok.events.run.commands import CancelRun, ReportGone
from dagbok.events.run.events import (
    AttemptLost,
    AttemptOpened,
    CandidateSubmitted,
    RunBlocked,
    RunStarted,
    TasksAdded,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.testing import (
    CLAIM,
    Scenario,
    TaskLimits,
    Usage,
    blocked,
    candidate,
    decompose,
    failure,
    like,
    task,
)
from tests.spec.steps import limited, reserving


def _accounts(run: Scenario, *, spent: Usage, reserved: Usage) -> Scenario:
    return run.then_state(spent=spent, reserved=reserved)


# Reservation, and what replaces it.


def test_a_work_attempt_reserves_what_its_task_may_use() -> None:
    run = limited(reserving("a", 40, "1.5"), task("b"), tokens=100)
    run.then(
        RunStarted,
        TasksAdded,
        like(AttemptOpened, task="a", reserved=Usage(40, "1.5")),
        like(AttemptOpened, task="b", reserved=None),
    )
    _accounts(run, spent=Usage(), reserved=Usage(40, "1.5"))


def test_what_the_worker_reports_takes_the_place_of_the_reservation() -> None:
    run = limited(reserving("a", 40, "1.5"), tokens=100).submits("a", candidate(1), usage=Usage(25, "0.75"))
    run.then(like(CandidateSubmitted, usage=Usage(25, "0.75")), like(AttemptOpened, kind="verify", reserved=None))
    _accounts(run, spent=Usage(25, "0.75"), reserved=Usage())


def test_a_worker_may_report_more_than_was_reserved() -> None:
    """It is spent: a budget may end above its limit by what ran already, and nothing more opens."""
    run = limited(reserving("a", 40), reserving("b", 40), tokens=100, max_open=1)
    over = run.submits("a", candidate(1), usage=Usage(101)).judges("a", "pass")
    over.then(VerdictRecorded, TaskVerified, RunBlocked("budget_exhausted", ("b",))).then_state(spent=Usage(101))


ENDS: tuple[tuple[str, Callable[[Scenario], Scenario], Usage], ...] = (
    ("candidate", lambda run: run.submits("a", candidate(1), usage=Usage(7, "0.5")), Usage(7, "0.5")),
    ("decomposition", lambda run: run.submits("a", decompose(task("c")), usage=Usage(7, "0.5")), Usage(7, "0.5")),
    ("breach", lambda run: run.submits("a", decompose(task("z")), usage=Usage(7, "0.5")), Usage(7, "0.5")),
    ("block", lambda run: run.submits("a", blocked(), usage=Usage(7, "0.5")), Usage(7, "0.5")),
    ("failure", lambda run: run.fails("a", usage=Usage(7, "0.5")), Usage(7, "0.5")),
    ("terminal failure", lambda run: run.fails("a", failure(terminal=True), usage=Usage(7, "0.5")), Usage(7, "0.5")),
    ("hand-back", lambda run: run.releases("a", usage=Usage(7, "0.5")), Usage(7, "0.5")),
    ("hand-back without a word", lambda run: run.releases("a"), Usage()),
    ("lease", lambda run: run.fires("lease", "a"), Usage(40, "1.5")),
    ("process gone", lambda run: run.when(ReportGone(CLAIM.process)), Usage(40, "1.5")),
    ("timeout", lambda run: run.fires("timeout", "a"), Usage(40, "1.5")),
    ("task cancelled", lambda run: run.cancels("a"), Usage(40, "1.5")),
    ("task superseded", lambda run: run.supersedes("a", task("a2")), Usage(40, "1.5")),
    ("run cancelled", lambda run: run.when(CancelRun()), Usage(40, "1.5")),
    (
        "run failed",
        lambda run: run.amends(failure_policy="fail_fast").fails("z", failure(terminal=True)),
        Usage(40, "1.5"),
    ),
    ("wall time", lambda run: run.fires("wall"), Usage(40, "1.5")),
)


@pytest.mark.parametrize(("end", "charged"), [end[1:] for end in ENDS], ids=[end[0] for end in ENDS])
def test_what_an_attempt_is_charged_when_it_ends(end: Callable[[Scenario], Scenario], charged: Usage) -> None:
    """What its worker says; all that it had reserved when nobody says anything. Either way the rest returns."""
    spec = task("a", limits=TaskLimits(40, "1.5"), timeout_ms=30_000)
    run = limited(spec, task("z"), max_wall_ms=600_000).starts("a")
    ended = end(run)
    again = ended.task("a").attempt
    ended.then_state(spent=charged, reserved=Usage() if again is None or again.reserved is None else Usage(40, "1.5"))


@pytest.mark.parametrize("name", ["task cancelled", "task superseded", "run cancelled", "wall time"])
def test_an_attempt_that_nobody_claimed_is_charged_nothing(name: str) -> None:
    end = next(end for known, end, _ in ENDS if known == name)
    run = limited(reserving("a", 40, "1.5"), task("z"), max_wall_ms=600_000)
    end(run).then_state(spent=Usage(), reserved=Usage())


def test_the_reservation_of_a_lost_attempt_is_charged_each_time() -> None:
    run = limited(reserving("a", 40), tokens=100).starts("a").fires("lease", "a")
    run.then(like(AttemptLost, usage=Usage(40)), like(AttemptOpened, reserved=Usage(40)))
    run.starts("a").fires("lease", "a").then(
        like(AttemptLost, usage=Usage(40)), RunBlocked("budget_exhausted", ("a",))
    ).then_state(spent=Usage(80), reserved=Usage())


def test_reviews_reserve_nothing_and_what_they_use_counts() -> None:
    review = limited(reserving("a", 40), tokens=100).submits("a", candidate(1), usage=Usage(40))
    review.judges("a", "error", usage=Usage(3)).then_state(spent=Usage(43), reserved=Usage())
    review.fails("a", usage=Usage(4)).then_state(spent=Usage(44))
    review.releases("a", usage=Usage(5)).then_state(spent=Usage(45))
    review.judges("a", "pass", usage=Usage(6)).then_state(spent=Usage(46))


@pytest.mark.parametrize(
    "usage",
    [
        Usage(-1),
        Usage(2**53 + 1),
        *(
            Usage(1, cost)
            for cost in ("-1", "", "1e3", "1,5", "NaN", ".5", "5.", "٣", "1\n", "1" * 19, "0." + "1" * 19)
        ),
    ],
)
def test_a_usage_that_cannot_be_added_up_is_refused_and_the_attempt_stays(usage: Usage) -> None:
    run = limited(task("a")).starts("a")
    for refused in (
        run.submits("a", candidate(1), usage=usage),
        run.submits("a", blocked(), usage=usage),
        run.submits("a", decompose(task("c")), usage=usage),
        run.fails("a", usage=usage),
        run.releases("a", usage=usage),
        run.submits("a", candidate(1)).judges("a", "pass", usage=usage),
    ):
        refused.then_refused(Code.INVALID_OUTCOME)
        assert refused.task("a").attempt is not None


# Exactness.


def test_a_sum_of_tokens_ends_where_tables_and_snapshots_end() -> None:
    """A worker that reports nonsense a thousand times stops no projection and no snapshot."""
    most, each = Usage(MAX_TOKENS), Usage(2**53)
    assert plus(Usage(MAX_TOKENS - 2**53), each) == most
    assert plus(most, each) == most
    assert minus(each, most) == Usage()
    assert msgspec.json.decode(msgspec.json.encode(most), type=Usage) == most


def test_costs_add_up_exactly_to_their_last_digit() -> None:
    """Eighteen digits before the point and eighteen behind it; no binary fractions."""
    large, small = "999999999999999999.999999999999999999", "0.000000000000000001"
    run = limited(task("a"), task("b"), task("c"))
    for id, cost in (("a", large), ("b", large), ("c", small)):
        run = run.submits(id, candidate(1), usage=Usage(0, cost))
    run.then_state(spent=Usage(0, "1999999999999999999.999999999999999999"))
    tenth = limited(task("a"), task("b"), task("c"))
    for id in ("a", "b", "c"):
        tenth = tenth.submits(id, candidate(1), usage=Usage(0, "0.1"))
    tenth.then_state(spent=Usage(0, "0.3"))


def test_a_budget_is_used_up_to_its_last_digit_and_no_further() -> None:
    cost = "0.333333333333333333"
    run = limited(*(reserving(f"t{place}", 0, cost) for place in range(4)), cost="1.333333333333333331")
    run.then_state(reserved=Usage(0, "0.999999999999999999"))
    assert list(run.state.active) == ["t0", "t1", "t2"]
    one_more = limited(*(reserving(f"t{place}", 0, cost) for place in range(4)), cost="1.333333333333333332")
    assert list(one_more.state.active) == ["t0", "t1", "t2", "t3"]


def test_zeros_at_the_end_are_no_difference() -> None:
    run = limited(reserving("a", 0, "1.50"), reserving("b", 0, "01.5"), cost="3.0")
    run.then_state(reserved=Usage(0, "3"))
    assert list(run.state.active) == ["a", "b"]
    run.submits("a", candidate(1), usage=Usage(0, "0.000")).then_state(spent=Usage(), reserved=Usage(0, "1.5"))


@pytest.mark.parametrize("zero", ["0", "0.0", "00", "000.000"])
def test_a_reservation_of_nothing_is_none_however_it_is_written(zero: str) -> None:
    """What reserves nothing opens only while something is left."""
    run = limited(reserving("a", 0, "1"), reserving("b", 0, zero), cost="1", max_open=1)
    used = run.submits("a", candidate(1), usage=Usage(0, "1")).judges("a", "pass")
    used.then_task("b", status="ready", attempt=None).then_state(status="blocked")
