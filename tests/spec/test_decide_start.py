"""Starting a run: what begins with it, and what it refuses to begin."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.run.commands import StartRun
from dagbok.events.run.events import AttemptOpened, RunStarted, TasksAdded
from dagbok.events.run.values import Limits, SecurityContext, Spec
from dagbok.testing import given, like, pin, run_of, start, task

CHAIN = (task("a"), task("b", depends_on=("a",)), task("c", depends_on=("a", "b")))
HUGE = 2**53


def test_a_run_starts_with_its_tasks_and_opens_what_may_run() -> None:
    command = start(*CHAIN)
    begun = given().when(command)
    begun.then(
        like(RunStarted, pinned=command.pinned, limits=Limits(), roots=("c",), context=SecurityContext(user="local")),
        like(TasksAdded, graph_revision=1),
        like(AttemptOpened, task="a", epoch=1, kind="work", phase="solve", key="work", pool="default"),
    )
    begun.then_state(status="running", graph_revision=1, edges=3, open_roots=1)
    begun.then_task("a", status="ready", open_deps=0).then_task("c", status="waiting", open_deps=2, depth=0)


def test_a_task_is_recorded_whole_with_its_hash() -> None:
    spec = task("a", contract={"b": 1, "a": 2})
    added = given().when(start(spec)).events[1]
    assert isinstance(added, TasksAdded)
    assert added.tasks[0].spec == spec
    assert added.tasks[0].spec_hash == sha256_hex(msgspec.json.encode(spec))
    assert added.tasks[0].created_by is None


def test_payload_and_dependencies_enter_in_canonical_form() -> None:
    loose = msgspec.structs.replace(
        task("b", depends_on=("a", "a")), contract=msgspec.Raw(b'{ "b": 1,\n "a": "e\xcc\x81" }')
    )
    node = given().when(start(task("a"), loose)).task("b")
    assert bytes(node.spec.contract) == '{"a":"é","b":1}'.encode()
    assert node.deps == ("a",)


def test_the_same_start_again_is_a_repeat_whatever_became_of_the_run() -> None:
    begun = run_of(task("a"))
    begun.when(start(task("a"))).then_repeated(of=0)
    begun.starts("a").when(start(task("a"))).then_repeated(of=0)


def test_limits_and_context_are_no_part_of_what_a_run_is() -> None:
    other = msgspec.structs.replace(start(task("a"), limits=Limits(max_open=5)), context=SecurityContext(user="eve"))
    run_of(task("a")).when(other).then_repeated(of=0)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (start(task("a"), failure_policy="fail_fast"), "pinned.failure_policy"),
        (start(task("a"), max_depth=3), "pinned.max_depth"),
        (start(task("a"), max_decompositions=2), "pinned.max_decompositions"),
        (start(task("a"), verifiers={"check": pin(version="2")}), "pinned.verifiers"),
        (start(task("a"), task("b"), roots=("a",)), "tasks"),
        (start(task("a"), task("b")), "roots"),
        (start(task("a"), max_depth=3, max_decompositions=2), "pinned.max_depth, pinned.max_decompositions"),
    ],
)
def test_another_start_is_refused_and_told_what_differs(other: StartRun, named: str) -> None:
    run_of(task("a")).when(other).then_refused(Code.CONFIG_MISMATCH, naming=named)


@pytest.mark.parametrize(
    ("command", "code", "named"),
    [
        (start(), Code.INVALID_SPEC, "at least one task"),
        (start(task("a"), roots=()), Code.INVALID_SPEC, "one root"),
        (start(task("a"), task("a")), Code.IDEMPOTENCY_CONFLICT, "same id"),
        (start(task("a"), roots=("a", "a")), Code.INVALID_SPEC, "twice"),
        (start(task("a"), roots=("b",)), Code.UNKNOWN_DEPENDENCY, "'b'"),
        (start(task("a", depends_on=("b",))), Code.UNKNOWN_DEPENDENCY, "'b'"),
        (start(task("a", depends_on=("a",)), roots=("a",)), Code.INVALID_SPEC, "itself"),
        (start(task("a", depends_on=("b",)), task("b", depends_on=("a",)), roots=("a",)), Code.CYCLE, "a, b"),
        (start(*CHAIN, limits=Limits(max_tasks=2)), Code.BUDGET_EXHAUSTED, "3 tasks"),
        (start(*CHAIN, limits=Limits(max_edges=2)), Code.BUDGET_EXHAUSTED, "3 edges"),
        (start(task("a", verifier="unknown")), Code.VERIFIER_UNAVAILABLE, "'unknown'"),
        (start(task("a", proposal_verifier="unknown")), Code.VERIFIER_UNAVAILABLE, "'unknown'"),
        (start(task("a", proposal_verifier="check")), Code.VERIFIER_UNAVAILABLE, "decompositions"),
        (start(task("a"), verifiers={"check": pin("decomposition")}), Code.VERIFIER_UNAVAILABLE, "'check'"),
        (start(task("a"), max_depth=0), Code.INVALID_SPEC, "max_depth"),
        (start(task("a"), max_decompositions=-1), Code.INVALID_SPEC, "max_decompositions"),
        (start(task("a"), limits=Limits(max_open=0)), Code.INVALID_SPEC, "max_open"),
        (start(task("a"), limits=Limits(backoff_base_ms=10 * HUGE)), Code.INVALID_SPEC, "backoff_base_ms"),
    ],
)
def test_what_cannot_run_is_not_begun(command: StartRun, code: Code, named: str) -> None:
    given().when(command).then_refused(code, naming=named).then_state(status=None, tasks={})


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (task(""), "id"),
        (task("no spaces"), "id"),
        (task("x" * 129), "id"),
        (task("a", goal=" \n"), "goal"),
        (task("a", worker=" "), "worker"),
        (task("a", worker="w" * 257), "worker"),
        (task("a", pool=""), "pool"),
        (task("a", timeout_ms=0), "timeout"),
        (task("a", timeout_ms=10 * HUGE), "timeout"),
        (task("a", lease_ms=-1), "lease"),
        (task("a", lease_ms=10 * HUGE), "lease"),
        (task("a", max_attempts=0), "attempts"),
        (task("a", priority=10 * HUGE), "priority"),
        (task("a", priority=-10 * HUGE), "priority"),
        (msgspec.structs.replace(task("a"), contract=msgspec.Raw(b'"\xff"')), "not a JSON text"),
        (msgspec.structs.replace(task("a"), metadata=msgspec.Raw(b"1e999")), "not a JSON text"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(spec: Spec, named: str) -> None:
    given().when(start(spec)).then_refused(Code.INVALID_SPEC, naming=named)


def test_no_verifier_may_take_the_name_of_the_built_in_check() -> None:
    """Decisions tell by this name whether a verifier has judged a decomposition."""
    verifiers = {"check": pin(), "structure": pin("candidate", "decomposition")}
    given().when(start(task("a"), verifiers=verifiers)).then_refused(Code.INVALID_SPEC, naming="structure")


def test_a_run_at_its_limits_starts() -> None:
    given().when(start(*CHAIN, limits=Limits(max_tasks=3, max_edges=3))).then(RunStarted, TasksAdded, AttemptOpened)


def test_ten_thousand_tasks_in_a_row_start_and_one_is_opened() -> None:
    """No recursion, and nothing is quadratic in the number of tasks or of roots."""
    chain = [task("t0"), *(task(f"t{i}", depends_on=(f"t{i - 1}",)) for i in range(1, 10_000))]
    begun = given().when(start(*chain, roots=tuple(spec.id for spec in chain)))
    begun.then(RunStarted, TasksAdded, like(AttemptOpened, task="t0")).then_state(open_roots=10_000)
