"""Conditions that decide nothing are warned of, and no others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from dagbok import Dagbok, Outcome, TaskContext, TaskSpec, When, verifier, worker
from dagbok.agents.workers.edges import idle_conditions, warn_of_idle_conditions
from dagbok.events.run.values import Spec
from dagbok.testing import task, when

ROOT, BRANCH = task("root"), task("branch", depends_on=("root",), when=(when("root", "ok", True),))


def _mixed(id: str, plain: str, condition: str = "root") -> Spec:
    return task(id, depends_on=(plain, condition), when=(when(condition, "ok", True),))


@pytest.mark.parametrize(
    ("specs", "idle"),
    [
        ([task("root"), task("other"), _mixed("ship", "other")], {"ship": "other"}),
        (
            [task("root"), task("other"), _mixed("ship", "other"), _mixed("tell", "ship")],
            {"ship": "other", "tell": "ship"},
        ),
        ([_mixed("ship", "other"), task("other", depends_on=("root",)), task("root")], {"ship": "other"}),
        ([ROOT, BRANCH], {}),
        ([ROOT, BRANCH, task("join", depends_on=("branch", "root"))], {}),
        ([ROOT, BRANCH, _mixed("join", "branch")], {}),
        ([ROOT, BRANCH, _mixed("join", "after"), task("after", depends_on=("branch",))], {}),
        ([_mixed("child", "a-task-of-the-run")], {}),
        ([task("a", depends_on=("a",)), _mixed("b", "a")], {}),
        ([task("root"), task("other"), msgspec.structs.replace(_mixed("ship", "other"), join="all")], {}),
    ],
    ids=[
        "plain", "behind it", "any order", "branch", "no condition", "join", "chain to a join", "outside", "cycle",
        "all",
    ],
)
def test_a_condition_beside_an_edge_that_is_surely_taken_decides_nothing(
    specs: list[Spec], idle: dict[str, str]
) -> None:
    assert idle_conditions(specs) == idle


def test_the_warning_is_one_line_however_many_they_are() -> None:
    many = [_mixed(f"t{number}", "other") for number in range(30)]
    with capture_logs() as logs:
        warn_of_idle_conditions([task("root"), task("other"), *many], run="r")
        warn_of_idle_conditions([ROOT, BRANCH], run="r")
    (line,) = logs
    assert (line["event"], line["log_level"], line["run"], line["number"]) == (
        "conditions.decide_nothing",
        "warning",
        "r",
        30,
    )
    assert line["tasks"].count("(runs after other anyway)") == 5


@worker("w")
async def work(task: TaskContext) -> Outcome:
    if task.inputs == "decompose" and task.phase == "solve":
        return Outcome.decompose(GRAPH)
    return Outcome.candidate(1, outputs={"ok": False})


@verifier("v", version="1", judges=("candidate", "decomposition"))
def yes(candidate: object, task: TaskContext) -> bool:
    return True


GRAPH = [
    TaskSpec(id="build", goal="build", worker="w", verifier="v"),
    TaskSpec(id="review", goal="review", worker="w", verifier="v"),
    TaskSpec(id="ship", goal="ship", worker="w", verifier="v", depends_on=["build", When("review", "ok", equals=True)]),
]


@pytest.mark.parametrize("where", ["start", "decompose"])
async def test_who_starts_or_decomposes_is_warned_and_it_is_true(tmp_path: Path, where: str) -> None:
    parent = TaskSpec(goal="do", worker="w", verifier="v", inputs="decompose")
    with capture_logs() as logs:
        async with Dagbok.embedded(tmp_path, work, yes, projector="none") as dagbok:
            result = await dagbok.run(GRAPH if where == "start" else parent)
    (line,) = [line for line in logs if line["event"] == "conditions.decide_nothing"]
    assert (line["run"], line["tasks"]) == (result.run, "ship (runs after build anyway)")
    assert result.counts["verified"] == result.tasks  # `ship` among them
