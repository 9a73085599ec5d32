"""What a user's function can say beside its result: that trying again is of no use, and what it used; and what a
verifier of decompositions is shown."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, Terminal, Usage, verifier, worker
from dagbok.events.run.events import AttemptFailed, CandidateSubmitted, DecompositionProposed
from dagbok.events.run.values import Usage as LoggedUsage
from tests.support.hosts import events_of, hosted, spec


class Sold(Terminal):
    """One of the user's own."""


@pytest.mark.parametrize("kind", [Terminal, Sold])
async def test_a_terminal_failure_of_a_worker_fails_the_task_at_once(kind: type[Terminal], tmp_path: Path) -> None:
    calls = list[int]()

    @worker("gives-up", pure=True)
    async def gives_up(task: TaskContext) -> Outcome:
        calls.append(task.attempt)
        raise kind("the house is sold")

    async with hosted(tmp_path, gives_up) as dagbok:
        result = await dagbok.run(spec("gives-up", max_attempts=5))
        assert (list(result.failed.values()), calls) == (["worker_failed"], [1])
        (failed,) = await events_of(dagbok, AttemptFailed)
        assert isinstance(failed, AttemptFailed)
        failure = failed.failure
        assert (failure.failure, failure.type, failure.message) == ("terminal", kind.__name__, "the house is sold")


async def test_a_terminal_failure_of_a_verifier_blocks_the_task_at_once(tmp_path: Path) -> None:
    calls = list[int]()

    @worker("count")
    async def count(task: TaskContext) -> Outcome:
        return Outcome.candidate(1)

    @verifier("gives-up", version="1")
    def gives_up(candidate: Candidate, task: TaskContext) -> bool:
        calls.append(task.epoch)
        raise Terminal("the checker is not installed")

    async with hosted(tmp_path, count, gives_up) as dagbok:
        result = await dagbok.run(spec("count", verifier="gives-up"))
        assert (list(result.blocked.values()), len(calls)) == (["verifier_error"], 1)


async def test_usage_is_kept_with_the_outcome(tmp_path: Path) -> None:
    @worker("spends")
    async def spends(task: TaskContext) -> Outcome:
        if task.inputs is None and task.phase == "solve":
            child = spec("spends", inputs="leaf")
            return Outcome.decompose([child], usage=Usage(tokens=7, cost="0.25"))
        return Outcome.candidate(1, usage=Usage(tokens=12, cost=Decimal("1.50")) if task.inputs else None)

    @verifier("both", version="1", judges=("candidate", "decomposition"))
    async def both(candidate: Candidate, task: TaskContext) -> bool:
        return True

    async with hosted(tmp_path, spends, both) as dagbok:
        assert (await dagbok.run(spec("spends", verifier="both"))).succeeded
        submitted = [event.usage for event in await events_of(dagbok, CandidateSubmitted)]
        (proposed,) = await events_of(dagbok, DecompositionProposed)
        assert isinstance(proposed, DecompositionProposed)
        assert proposed.usage == LoggedUsage(7, "0.25")
        assert submitted == [LoggedUsage(12, "1.5"), LoggedUsage()]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("1.00", "1"),
        ("1e5", "100000"),
        (Decimal("0.000000000000000001"), "0.000000000000000001"),
        ("123456789012345678.123456789012345678", "123456789012345678.123456789012345678"),
    ],
)
def test_a_cost_is_an_exact_decimal_number(written: Decimal | str, kept: str) -> None:
    assert Usage(cost=written).cost == kept


@pytest.mark.parametrize("written", ["", "ten", "-1", "nan", "inf", "1e18", "1e-19", "1e999999999", "1e-999999999"])
def test_what_is_no_amount_is_refused(written: str) -> None:
    with pytest.raises(ValidationError):
        Usage(cost=written)


async def test_a_verifier_of_decompositions_sees_all_that_the_worker_wrote(tmp_path: Path) -> None:
    child = TaskSpec(
        id="child",
        goal="a part",
        worker="splits",
        verifier="looks",
        inputs={"leaf": True},
        contract={"rows": 3},
        metadata={"colour": "red"},
        proposal_verifier="looks",
        pool="default",
        priority=4,
        timeout_s=12.5,
        lease_s=30.0,
        max_attempts=2,
    )
    shown = list[TaskSpec]()

    @worker("splits")
    async def splits(task: TaskContext) -> Outcome:
        return Outcome.decompose([child]) if task.inputs is None and task.phase == "solve" else Outcome.candidate(1)

    @verifier("looks", version="1", judges=("candidate", "decomposition"))
    async def looks(candidate: Candidate, task: TaskContext) -> bool:
        shown.extend(candidate.tasks)
        return candidate.is_decomposition == bool(candidate.tasks) == (not candidate)

    async with hosted(tmp_path, splits, looks) as dagbok:
        assert (await dagbok.run(spec("splits", verifier="looks"))).succeeded
    assert shown == [child]
