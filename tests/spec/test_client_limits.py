"""Limits in a program: named when a run starts, changed one by one while it goes on, shown beside what is used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import ValidationError

from dagbok import Code, Dagbok, Limits, Outcome, Refused, TaskContext, TaskLimits, TaskSpec, Usage, worker
from dagbok.events.budgets import LimitChanges, encode_limits
from dagbok.events.errors import InvalidInput
from dagbok.events.run import values
from dagbok.testing import simulate
from tests.support.hosts import hosted, spec, yes

COSTS = TaskLimits(tokens=30, cost="0.25")


@worker("pays", pure=True)
async def pays(task: TaskContext) -> Outcome:
    task.use(tokens=70, cost="0.5")
    return Outcome.blocked("not yet") if task.inputs == "wait" else Outcome.candidate(1)


@worker("spends")
async def spends(task: TaskContext) -> Outcome:
    """Until it is cancelled: it holds what it reserved."""
    await asyncio.Event().wait()
    raise AssertionError("nothing sets it")


def paying(id: str = "t", *, inputs: object = None, depends_on: Sequence[str] = ()) -> TaskSpec:
    return spec("pays", id=id, inputs=inputs, depends_on=depends_on)


def in_force(dagbok: Dagbok, run: str) -> values.Limits:
    return dagbok.host.owner.state.runs[f"run:{run}"].limits


# What a run starts with.


async def test_the_same_start_with_higher_limits_raises_them(tmp_path: Path) -> None:
    async with hosted(tmp_path, pays) as dagbok:
        run = await dagbok.start(paying(inputs="wait"), key="k", limits=Limits(max_tasks=10, max_open=5))
        again = Limits(max_tasks=20, max_open=2)
        assert await dagbok.start(paying(inputs="wait"), key="k", limits=again) == run
        assert (in_force(dagbok, run).max_tasks, in_force(dagbok, run).max_open) == (20, 5)


async def test_the_same_start_raises_nothing_that_it_does_not_name(tmp_path: Path) -> None:
    """A default that nobody wrote is no wish."""
    async with hosted(tmp_path, pays) as dagbok:
        run = await dagbok.start(paying(inputs="wait"), key="k", limits=Limits(max_open=5))
        await dagbok.start(paying(inputs="wait"), key="k", limits=Limits(max_tokens=500))
        assert in_force(dagbok, run) == values.Limits(max_open=5, max_tokens=500)
        await dagbok.start(paying(inputs="wait"), key="k", limits=Limits(max_open=1_000))
        assert in_force(dagbok, run) == values.Limits(max_open=1_000, max_tokens=500)


async def test_the_same_start_sets_a_budget_where_there_was_none(tmp_path: Path) -> None:
    async with hosted(tmp_path, pays) as dagbok:
        run = (await dagbok.run(paying(inputs="wait"), key="k")).run
        with pytest.raises(Refused, match=r"max_tokens would be below the tokens used \(70\)") as refused:
            await dagbok.start(paying(inputs="wait"), key="k", limits=Limits(max_tokens=69))
        assert refused.value.code == Code.BUDGET_EXHAUSTED
        await dagbok.start(paying(inputs="wait"), key="k", limits=Limits(max_tokens=70))
        assert in_force(dagbok, run) == values.Limits(max_tokens=70)


async def test_a_mapping_is_no_limits(tmp_path: Path) -> None:
    wrong: Any = {"max_tokens": 5}
    async with hosted(tmp_path, pays) as dagbok:
        with pytest.raises(InvalidInput, match=r"limits are a dagbok.Limits, not builtins.dict"):
            await dagbok.start(paying(), limits=wrong)


# One changes, the others stay.


async def test_one_limit_is_raised_by_its_name(tmp_path: Path) -> None:
    """The others stay, above and below their defaults."""
    async with hosted(tmp_path, pays) as dagbok:
        first = Limits(max_tokens=100, max_attempts=9, max_open=5)
        run = await dagbok.start([paying(inputs="wait"), paying("u", depends_on=["t"])], limits=first)
        assert (await dagbok.set_limits(run, max_tokens=20_000)).accepted
        assert in_force(dagbok, run) == values.Limits(max_tokens=20_000, max_attempts=9, max_open=5)
        assert (await dagbok.set_limits(run, Limits(max_cost="7"), max_wall_ms=3_600_000)).accepted
        expected = values.Limits(max_tokens=20_000, max_attempts=9, max_open=5, max_cost="7", max_wall_ms=3_600_000)
        assert in_force(dagbok, run) == expected


async def test_limits_in_one_value_name_what_is_written_in_it(tmp_path: Path) -> None:
    async with hosted(tmp_path, pays) as dagbok:
        run = await dagbok.start(paying(inputs="wait"), limits=Limits(max_attempts=9, max_open=5))
        await dagbok.set_limits(run, Limits(max_tokens=200, max_open=1_000, max_cost=None))
        assert in_force(dagbok, run) == values.Limits(max_attempts=9, max_tokens=200)


async def test_what_is_shown_of_a_run_can_be_given_back(tmp_path: Path) -> None:
    async with hosted(tmp_path, pays) as dagbok:
        result = await dagbok.run(paying(inputs="wait"), limits=Limits(max_attempts=9, max_open=5))
        await dagbok.set_limits(result.run, result.limits)
        assert in_force(dagbok, result.run) == values.Limits(max_attempts=9, max_open=5)


async def test_a_blocked_run_goes_on_when_its_budget_is_raised_by_name(tmp_path: Path) -> None:
    async with hosted(tmp_path, pays) as dagbok:
        tasks = [paying("a"), paying("b", depends_on=["a"])]
        stuck = await dagbok.run(tasks, limits=Limits(max_tokens=50))
        assert (stuck.code, stuck.usage.tokens, stuck.limits.max_tokens) == ("budget_exhausted", 70, 50)
        await dagbok.set_limits(stuck.run, max_tokens=100)
        assert (await dagbok.wait(stuck.run)).succeeded


async def test_a_limit_that_would_become_smaller_is_refused(tmp_path: Path) -> None:
    async with hosted(tmp_path, pays) as dagbok:
        run = await dagbok.start(paying(inputs="wait"), limits=Limits(max_tokens=100))
        with pytest.raises(Refused, match="max_tokens stands at 100") as refused:
            await dagbok.set_limits(run, max_tokens=99)
        assert refused.value.code == Code.CONFIG_MISMATCH


@pytest.mark.parametrize(
    ("limits", "changes", "why"),
    [
        (None, {}, "no limit is named"),
        (Limits(), {}, "no limit is named"),
        (Limits(max_tokens=None), {}, "no limit is named"),
        (Limits(max_tokens=5), {"max_tokens": 6}, "named twice: max_tokens"),
    ],
)
async def test_a_change_names_something_and_nothing_twice(
    limits: Limits | None, changes: LimitChanges, why: str, tmp_path: Path
) -> None:
    async with hosted(tmp_path, pays) as dagbok:
        with pytest.raises(InvalidInput, match=why) as refused:
            await dagbok.set_limits("0" * 32, limits, **changes)
        assert refused.value.code == Code.USAGE


async def test_a_name_that_is_no_limit_is_refused_where_it_is_written(tmp_path: Path) -> None:
    wrong: Any = {"tokens": 5}
    async with hosted(tmp_path, pays) as dagbok:
        with pytest.raises(ValidationError, match="tokens"):
            await dagbok.set_limits("0" * 32, **wrong)


# What is shown.


async def test_a_result_has_the_limits_in_force_and_what_counts_against_them(tmp_path: Path) -> None:
    async with hosted(tmp_path, pays, spends) as dagbok:
        tasks = [paying("a"), spec("spends", id="b", depends_on=["a"], limits=COSTS)]
        run = await dagbok.start(tasks, limits=Limits(max_tokens=100, max_cost=Decimal("7.50")))
        events = dagbok.events(run)
        async for event in events:
            if event.type == "AttemptStarted" and event.task == "b":
                break
        now = await dagbok.result(run)
        assert now.limits == Limits(max_tokens=100, max_cost="7.5")
        assert (now.usage, now.reserved) == (values.Usage(70, "0.5"), values.Usage(30, "0.25"))
        assert now.closed_ms is None
        await dagbok.set_limits(run, max_tokens=500)
        await dagbok.cancel(run)
        over = await dagbok.wait(run)
        assert (over.limits.max_tokens, over.reserved) == (500, values.Usage())
        assert over.closed_ms is not None
        assert over.closed_ms >= over.started_ms > 0


async def test_a_result_says_how_much_its_artifacts_come_to(tmp_path: Path) -> None:
    async with hosted(tmp_path, pays) as dagbok:
        assert (await dagbok.run(paying())).artifact_bytes == len(b"1")


# Written wrongly, it is told where it is written.


def test_what_people_write_has_all_limits_with_the_defaults_of_the_log() -> None:
    assert encode_limits(Limits()) == values.Limits()
    assert tuple(Limits.model_fields) == values.Limits.__struct_fields__ == tuple(get_type_hints(LimitChanges))


COUNTS = [name for name in Limits.model_fields if name != "max_cost"]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 2**53 + 1, True, "5", 5.0, Decimal(5)])
def test_a_limit_that_is_no_count_is_refused_at_once(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=f"(?s)dagbok Limits.*{name}") as refused:
        Limits.model_validate({name: value})
    assert refused.value.error_count() == 1


@pytest.mark.parametrize("name", COUNTS)
def test_one_is_the_least_that_it_may_be(name: str) -> None:
    assert getattr(Limits.model_validate({name: 1}), name) == 1
    assert getattr(Limits.model_validate({name: 2**53}), name) == 2**53


COSTLY: dict[str, Callable[[Any], Any]] = {
    "Limits": lambda cost: Limits(max_cost=cost).max_cost,
    "TaskLimits": lambda cost: TaskLimits(cost=cost).cost,
    "Usage": lambda cost: Usage(cost=cost).cost,
}


@pytest.mark.parametrize("cost_in", COSTLY.values(), ids=COSTLY.keys())
@pytest.mark.parametrize(
    ("cost", "exact"),
    [("1.50", "1.5"), (Decimal("0.10"), "0.1"), (3, "3"), ("0.000000000000000001", "0.000000000000000001")],
)
def test_a_cost_is_text_a_decimal_or_an_integer(cost_in: Callable[[Any], Any], cost: object, exact: str) -> None:
    assert cost_in(cost) == exact


@pytest.mark.parametrize("cost_in", COSTLY.values(), ids=COSTLY.keys())
@pytest.mark.parametrize(
    ("cost", "why"),
    [
        (1.5, r"a float is not exact: write it as text, '1.5', or as a Decimal"),
        (0.1 + 0.2, "a float is not exact"),
        (5.0, "a float is not exact"),
        (float("nan"), "a float is not exact"),
        (True, "no decimal number"),
        (b"1", "no decimal number"),
        ("one", "no decimal number"),
        ("1e400", "not within 0"),
        ("-0.01", "not within 0"),
        (-1, "not within 0"),
        (Decimal("NaN"), "not within 0"),
        ("0.0000000000000000001", "more than 18 digits"),
    ],
)
def test_a_cost_that_is_none_is_refused_with_one_reason(cost_in: Callable[[Any], Any], cost: object, why: str) -> None:
    """Money never goes through a binary fraction, not even one that looks round."""
    with pytest.raises(ValidationError, match=why) as refused:
        cost_in(cost)
    assert refused.value.error_count() == 1


async def test_a_worker_that_notes_a_float_is_told_at_once(tmp_path: Path) -> None:
    """It would do so again: the task fails at its first attempt, and the failure says what to write."""
    told: list[str] = []

    @worker("floats")
    async def floats(task: TaskContext) -> Outcome:
        wrong: Any = 0.5
        try:
            task.use(cost=wrong)
        except ValidationError as error:
            told.append(str(error))
            raise
        return Outcome.candidate(1)

    async with hosted(tmp_path, floats) as dagbok:
        assert (await dagbok.run(spec("floats", id="t"))).failed == {"t": "invalid_outcome"}
    assert len(told) == 1
    assert "write it as text, '0.5'" in told[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("priority", "5"),
        ("priority", True),
        ("max_attempts", True),
        ("max_attempts", 2.0),
        ("timeout_s", "90"),
        ("timeout_s", True),
        ("lease_s", "60"),
        ("limits", {"tokens": "5"}),
        ("limits", {"tokens": True}),
        ("limits", {"context_bytes": "5"}),
        ("limits", {"context_artifacts": 1.0}),
    ],
)
def test_a_number_of_a_task_is_of_the_type_that_it_is(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        TaskSpec.model_validate({"goal": "g", "worker": "pays", "verifier": "yes", field: value})


def test_whole_seconds_are_seconds() -> None:
    assert spec("pays", timeout_s=90, lease_s=30).timeout_s == 90.0


# In a simulation.


def test_a_simulation_takes_the_limits_of_a_program() -> None:
    simulated = simulate(paying(), pays, yes, seeds=[1], limits=Limits(max_tokens=500))
    assert simulated.runs["succeeded"] == 1


@pytest.mark.parametrize("limit", [{"max_cost": "0"}, {"max_cost": "0.00"}, {"max_tokens": 0}, {"max_open": 0}])
def test_a_limit_of_zero_is_refused(limit: dict[str, str | int]) -> None:
    with pytest.raises(ValidationError):
        Limits.model_validate(limit)


def test_a_reservation_and_a_use_of_nothing_are_right() -> None:
    assert (TaskLimits(cost=0).cost, Usage(cost=Decimal(0)).cost) == ("0", "0")
