"""Workers and verifiers in a unit test: what `dagbok.testing` hands them is what a run hands them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dagbok import (
    Artifact,
    Candidate,
    Code,
    DagbokError,
    Outcome,
    TaskContext,
    TaskSpec,
    Terminal,
    Verdict,
    verifier,
    worker,
)
from dagbok.events.run.values import SecurityContext
from dagbok.testing import (
    NO_FAULTS,
    Problem,
    candidate_of,
    context,
    failure,
    outcome_of,
    simulate,
    verdict_of,
)

CALLABLE = {"use", "used"}
WHERE = {"run_id", "tenant", "project", "graph_revision", "epoch", "security"}


def _attributes(task: TaskContext) -> dict[str, Any]:
    names = {name for name in vars(TaskContext) if not name.startswith("_")} - CALLABLE
    seen: dict[str, Any] = {name: getattr(task, name) for name in names | {"cancelled"}}
    seen["dependencies"] = {
        name: {view.name: (view.data(), view.ref.media_type, view.ref.sha256) for view in found.values()}
        for name, found in task.dependencies.items()
    }
    seen["session"] = (task.session.turn, task.session.digest, task.session.load())
    return seen


def _judged(candidate: Candidate) -> dict[str, Any]:
    artifacts = {name: (view.data(), view.ref.media_type) for name, view in candidate.items()}
    proposed = [spec.model_dump(exclude={"lease_s"}) for spec in candidate.tasks]
    return {
        "artifacts": artifacts,
        "outputs": candidate.outputs,
        "tasks": proposed,
        "reuse": candidate.reuse,
        "rationale": candidate.rationale,
    }


FIRST = Outcome.candidate(
    [1, 2], outputs={"rows": 2}, artifacts={"t.csv": Artifact(content="a,b", media_type="text/csv")}
)
CHILD = TaskSpec(id="child", goal="help", worker="solo", verifier="strict", inputs="of the child")
PLAN = Outcome.decompose([CHILD], rationale="it is large", composition_contract={"whole": True})
LAST = TaskSpec(
    id="last",
    goal="sum up",
    worker="grow",
    verifier="strict",
    depends_on=["first"],
    inputs={"n": 1},
    contract={"sum": 3},
    metadata="mine",
)


def test_a_run_hands_out_what_the_test_context_has() -> None:
    """Every attribute of the context in every phase, and of the candidate, as a real run has them."""
    seen: dict[tuple[str, str, int], dict[str, Any]] = {}
    judged: dict[tuple[str, str, int], dict[str, Any]] = {}

    @worker("solo")
    async def solo(task: TaskContext) -> Outcome:
        seen[task.task_id, task.phase, task.attempt] = _attributes(task)
        return FIRST

    @worker("grow")
    async def grow(task: TaskContext) -> Outcome:
        seen[task.task_id, task.phase, task.attempt] = _attributes(task)
        if task.phase == "solve" and task.attempt == 1:
            raise ValueError("not yet")
        return PLAN if task.phase == "solve" else Outcome.candidate({"try": task.attempt})

    @verifier("strict", version="1", judges=("candidate", "decomposition"))
    async def strict(candidate: Candidate, task: TaskContext) -> Verdict | bool:
        judged[task.task_id, task.phase, task.attempt] = _judged(candidate)
        if task.task_id == "last" and task.phase == "integrate" and task.diagnostics is None:
            return Verdict.failed({"wrong": "all of it"})
        return True

    first = TaskSpec(id="first", goal="begin", worker="solo", verifier="strict")
    simulate([first, LAST], solo, grow, strict, seeds=[1], faults=NO_FAULTS)

    problem = Problem(Code.WORKER_FAILED, failure=failure("not yet"))
    tries = sorted(attempt for id, phase, attempt in seen if (id, phase) == ("last", "integrate"))
    both = {"first": FIRST, "child": FIRST}
    expected = {
        ("first", "solve", 1): context(first),
        ("child", "solve", 1): context(CHILD),
        ("last", "solve", 1): context(LAST, dependencies={"first": FIRST}),
        ("last", "solve", 2): context(LAST, dependencies={"first": FIRST}, problem=problem),
        ("last", "integrate", tries[-1]): context(
            LAST,
            phase="integrate",
            dependencies=both,
            composition={"whole": True},
            diagnostics={"wrong": "all of it"},
            attempt=tries[-1],
        ),
    }
    for at, made in expected.items():
        mine, real = _attributes(made), dict(seen[at])
        assert mine.keys() == real.keys()
        for attribute in mine.keys() - WHERE - {"problem"}:
            assert mine[attribute] == real[attribute], (at, attribute)
        assert (mine["problem"] is None) == (real["problem"] is None)
    assert judged["first", "solve", 1] == _judged(candidate_of(FIRST))
    assert judged["last", "solve", 2] == _judged(candidate_of(PLAN))


def test_everything_that_a_context_has_can_be_set() -> None:
    changed = context(
        goal="g",
        inputs=1,
        contract=2,
        metadata=3,
        dependencies={"a": b"raw"},
        phase="integrate",
        composition=4,
        diagnostics="wrong",
        attempt=5,
        epoch=6,
        cancelled=True,
        tenant="t",
        project="p",
        run_id="r",
        task_id="i",
        graph_revision=7,
        security=SecurityContext("me"),
        session={"said": 8},
    )
    plain = _attributes(context())
    assert [name for name, value in _attributes(changed).items() if value == plain[name]] == []


def test_values_beside_a_spec_replace_those_in_it() -> None:
    made = context(LAST, inputs={"n": 9})
    assert (made.inputs, made.contract, made.goal, made.task_id) == ({"n": 9}, {"sum": 3}, "sum up", "last")


@worker("count")
def count(task: TaskContext) -> Outcome:
    """In a thread, until it is stopped."""
    assert threading.current_thread() is not threading.main_thread()
    done = 0
    while not task.cancelled:
        done += 1
        task.use(tokens=1, cost="0.5")
        task.cancelled = done == 3
    return Outcome.candidate(done)


@worker("odd")
async def odd(task: TaskContext) -> Outcome:
    if task.inputs == "stop":
        raise Terminal("of no use")
    return task.inputs  # type: ignore[no-any-return]  # what an author did not see


@verifier("strict", version="1")
def strict(candidate: Candidate, task: TaskContext) -> Verdict | bool:
    return candidate.json() == 3 or Verdict.failed({"is": candidate.json()}, evidence="counted")


def test_notes_are_collected_and_cancellation_is_seen() -> None:
    handed = context()
    assert strict(candidate_of(outcome_of(count, handed)), handed) is True
    assert (handed.used.tokens, handed.used.cost) == (3, "1.5")
    assert outcome_of(count, context(cancelled=True)) == Outcome.candidate(0)


def test_a_word_of_a_verifier_becomes_a_verdict() -> None:
    assert verdict_of(strict, candidate_of(Outcome.candidate(3)), context()) == Verdict.passed()
    failed = verdict_of(strict, candidate_of(Outcome.candidate(4)), context())
    assert failed == Verdict.failed({"is": 4}, evidence="counted")


def test_large_artifacts_lie_in_memory() -> None:
    large = bytes(100_000)
    assert candidate_of(Outcome.candidate(large)).data() == large
    assert context(dependencies={"a": large}).dependencies["a"].data() == large


def test_what_a_function_raises_reaches_the_test() -> None:
    with pytest.raises(Terminal, match="of no use"):
        outcome_of(odd, context(inputs="stop"))


def test_an_answer_that_a_run_refuses_is_refused() -> None:
    with pytest.raises(DagbokError, match="a worker returns an Outcome, not str") as refused:
        outcome_of(odd, context(inputs="free text"))
    assert refused.value.code == Code.INVALID_OUTCOME
    with pytest.raises(DagbokError, match="a worker returns an Outcome, not int"):
        candidate_of(3)
    with pytest.raises(DagbokError, match="a blocked outcome is not judged"):
        candidate_of(Outcome.blocked("no key"))
    with pytest.raises(DagbokError, match="task a has published nothing: its outcome is blocked"):
        context(dependencies={"a": Outcome.blocked("no key")})
    with pytest.raises(DagbokError, match="both diagnostics and a problem"):
        context(diagnostics="x", problem=Problem(Code.WORKER_FAILED))


async def test_in_an_event_loop_the_function_is_awaited_by_the_test() -> None:
    with pytest.raises(DagbokError, match="count is called within an event loop"):
        outcome_of(count, context())
