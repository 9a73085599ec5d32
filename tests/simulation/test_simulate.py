"""`simulate`: what people test their own workers and verifiers with."""

from __future__ import annotations

import asyncio
import doctest
import random
import socket

import pytest

from dagbok import Candidate, Code, Outcome, RunResult, TaskContext, TaskSpec, When, verifier, worker
from dagbok.events.errors import InvalidInput
from dagbok.testing import NO_FAULTS, Faults, SimulationFailed, simulate, simulation

SEEDS = range(25)


@worker("plan")
async def plan(task: TaskContext) -> Outcome:
    """Two children, then their sum."""
    if task.phase == "integrate":
        return Outcome.candidate(sum(child.json() for child in task.dependencies.values()))
    return Outcome.decompose(
        [
            TaskSpec(id=f"child-{number}", goal="add", worker="add", verifier="sum", inputs=[number, 1])
            for number in (1, 2)
        ]
    )


@worker("add", pure=True)
def add(task: TaskContext) -> Outcome:
    """A sync function."""
    return Outcome.candidate(sum(task.inputs), outputs={"many": len(task.inputs)})


@verifier("sum", version="1")
async def is_sum(candidate: Candidate, task: TaskContext) -> bool:
    """Takes a while."""
    await asyncio.sleep(20)
    return isinstance(candidate.json(), int)


def test_the_example_of_the_package_holds() -> None:
    assert doctest.testmod(simulation).failed == 0
    assert doctest.testmod(simulation).attempted > 0


def test_every_run_ends_as_it_has_to_whatever_goes_wrong() -> None:
    def five(result: RunResult) -> None:
        assert result.succeeded
        assert result.json() == 5

    done = simulate(TaskSpec(goal="plan", worker="plan", verifier="sum"), plan, add, is_sum, seeds=SEEDS, check=five)
    assert done.runs == {"succeeded": len(SEEDS)}
    assert done.vanished > len(SEEDS)
    assert sum(done.faults.values()) > len(SEEDS)


def test_conditions_hold_in_every_schedule() -> None:
    tasks = [
        TaskSpec(id="first", goal="add", worker="add", verifier="sum", inputs=[1, 2]),
        TaskSpec(
            id="many",
            goal="add",
            worker="add",
            verifier="sum",
            inputs=[1],
            depends_on=(When("first", "many", above=5),),
        ),
    ]

    def skipped(result: RunResult) -> None:
        assert (result.status, result.counts) == ("succeeded", {"verified": 1, "skipped": 1})

    simulate(tasks, add, is_sum, seeds=range(10), check=skipped)


def test_without_faults_nothing_goes_wrong() -> None:
    done = simulate(
        TaskSpec(goal="a", worker="add", verifier="sum", inputs=[1]), add, is_sum, seeds=range(5), faults=NO_FAULTS
    )
    assert (done.vanished, done.faults, done.runs) == (0, {}, {"succeeded": 5})


def test_a_worker_that_must_not_run_twice_is_found_out_and_the_history_is_short() -> None:
    sent: list[str] = []

    @worker("mail")
    async def mail(task: TaskContext) -> Outcome:
        sent.append(task.run_id)
        return Outcome.candidate("sent")

    def once(result: RunResult) -> None:
        times, sent[:] = len(sent), []
        assert times == 1, f"mailed {times} times"

    @verifier("trust", version="1")
    def trust(candidate: Candidate, task: TaskContext) -> bool:
        return True

    with pytest.raises(SimulationFailed, match="mailed 2 times") as failed:
        simulate(TaskSpec(goal="mail", worker="mail", verifier="trust"), mail, trust, check=once)
    error = failed.value
    assert f"simulate(…, seeds=[{error.seed}])" in str(error)
    assert 0 < len(error.history) < 80
    assert str(error).count("runs mail for") == 2


def test_the_same_seed_fails_in_the_same_way() -> None:
    @worker("dice")
    def dice(task: TaskContext) -> Outcome:
        return Outcome.candidate(random.randrange(10**9))

    values: list[int] = []
    for _ in range(2):
        simulate(
            TaskSpec(goal="roll", worker="dice", verifier="sum"),
            dice,
            is_sum,
            seeds=[7],
            check=lambda result: values.append(result.json()),
        )
    assert values[0] == values[1]


def test_a_worker_that_leaves_the_simulation_is_told_so() -> None:
    @worker("web")
    async def web(task: TaskContext) -> Outcome:
        await asyncio.open_connection("localhost", 80)
        return Outcome.candidate("fetched")

    with pytest.raises(SimulationFailed, match="no real I/O"):
        simulate(TaskSpec(goal="fetch", worker="web", verifier="sum"), web, is_sum, faults=NO_FAULTS)
    assert socket.getdefaulttimeout() is None


@pytest.mark.parametrize(
    ("spec", "said", "code"),
    [
        (TaskSpec(id="one", goal="add", worker="ad", verifier="sum"), "'one' names the worker 'ad'", Code.USAGE),
        (TaskSpec(goal="add", worker="add", verifier="sums"), "verifier 'sums'", Code.VERIFIER_UNAVAILABLE),
        (
            TaskSpec(goal="add", worker="add", verifier="sum", proposal_verifier="sm"),
            "the verifier 'sm'",
            Code.VERIFIER_UNAVAILABLE,
        ),
    ],
)
def test_what_tasks_name_and_nobody_gave_is_said_before_anything_runs(spec: TaskSpec, said: str, code: Code) -> None:
    with pytest.raises(InvalidInput, match=r"which simulate was not given; did you mean '(add|sum)'") as refused:
        simulate(spec, add, is_sum)
    assert said in str(refused.value)
    assert "pass the" in (refused.value.advice or "")
    assert refused.value.code == code


def test_a_worker_that_a_decomposition_names_and_nobody_has_is_named() -> None:
    with pytest.raises(SimulationFailed, match="no process has worker 'add': pass what the tasks name to simulate"):
        simulate(TaskSpec(goal="plan", worker="plan", verifier="sum"), plan, is_sum, faults=NO_FAULTS, seeds=[1])


def test_a_run_that_is_refused_says_why() -> None:
    turns = [TaskSpec(id=id, goal="add", worker="add", verifier="sum", depends_on=[of]) for id, of in ("ab", "ba")]
    first = TaskSpec(id="c", goal="add", worker="add", verifier="sum")
    with pytest.raises(SimulationFailed, match=r"never started: run \(cycle: "):
        simulate([first, *turns], add, is_sum, faults=NO_FAULTS, seeds=[1])


async def test_inside_of_an_event_loop_it_refuses() -> None:
    with pytest.raises(RuntimeError, match="plain function"):
        simulate(TaskSpec(goal="a", worker="add", verifier="sum", inputs=[1]), add, is_sum, faults=Faults())
