"""Several tasks of a run ask for tasks at the same time; revisions that went by; what children make up together."""

from __future__ import annotations

from dagbok.events.canonical import Json
from dagbok.events.run.events import (
    AttemptOpened,
    DecompositionAccepted,
    DecompositionProposed,
    DecompositionRefused,
    TaskBackedOff,
    TasksAdded,
    VerdictRecorded,
)
from dagbok.testing import Limits, Scenario, candidate, decompose, given, like, pin, run_of, start, task
from tests.spec.steps import done

JUDGED = {"check": pin("candidate", "decomposition")}


# Concurrent decompositions.


def test_decompositions_of_one_run_cost_each_other_no_attempts() -> None:
    """All are made on the first revision and accepted on whatever it is then."""
    run = run_of(*(task(f"t{place}") for place in range(20)))
    for place in range(20):
        run = run.starts(f"t{place}")
    for place in range(20):
        run = run.submits(f"t{place}", decompose(task(f"c{place}"))).then(
            like(DecompositionAccepted, graph_revision=place + 2), TasksAdded, AttemptOpened
        )
    assert all(run.task(f"t{place}").failures == run.task(f"t{place}").conflicts == 0 for place in range(20))


def test_proposals_that_are_judged_at_the_same_time_are_accepted_in_any_order() -> None:
    run = given().when(start(task("a"), task("b"), verifiers=JUDGED))
    both = run.submits("a", decompose(task("c"))).submits("b", decompose(task("d"), reuse=("a",)))
    both.then(DecompositionProposed, AttemptOpened)
    for first, second in (("a", "b"), ("b", "a")):
        grown = both.judges(first, "pass").judges(second, "pass")
        grown.then(VerdictRecorded, like(DecompositionAccepted, graph_revision=3), TasksAdded, AttemptOpened)
        grown.then_task("a", failures=0).then_task("b", failures=0, deps=("d", "a"))


def test_two_that_would_wait_for_each_other_the_second_is_refused() -> None:
    run = run_of(task("a"), task("b")).starts("a").starts("b").submits("a", decompose(reuse=("b",)))
    run.submits("b", decompose(task("c"), reuse=("a",))).then_task("b", status="blocked", deps=())
    through = run_of(task("a"), task("b")).submits("a", decompose(task("c"), reuse=("b",)))
    through.submits("b", decompose(reuse=("c",))).then_task("b", status="waiting", deps=("c",))
    through.submits("b", decompose(task("d", depends_on=("a",)))).then_task("b", status="blocked")


def test_two_proposals_that_would_wait_for_each_other_pass_one_by_one() -> None:
    run = given().when(start(task("a"), task("b"), verifiers=JUDGED))
    both = run.submits("a", decompose(reuse=("b",))).submits("b", decompose(reuse=("a",)))
    second = both.judges("a", "pass").judges("b", "pass")
    assert isinstance(second.events[1], DecompositionRefused)
    assert second.events[1].code == "cycle"


# Stale revisions.


def _stale(run: Scenario) -> Scenario:
    return run.submits("a", decompose(task("c"), expected_graph_revision=7))


def test_the_first_stale_revision_is_answered_at_once_and_the_next_ones_ever_later() -> None:
    """A worker that never names the present revision is not asked as fast as it answers."""
    limits = Limits(backoff_base_ms=1_000, backoff_max_ms=4_000)
    run = given().when(start(task("a"), limits=limits))
    once = _stale(run).then(like(DecompositionRefused, spent=False), like(AttemptOpened, task="a", epoch=2))
    pauses_ms = []
    again = once
    for _ in range(4):
        again = _stale(again).then(DecompositionRefused, like(TaskBackedOff, task="a", failures=0, review=False))
        again.then_task("a", status="backoff", attempt=None, failures=0)
        pauses_ms.append(again.task("a").due_ms - again.now_ms)
        again = again.fires("backoff", "a").then(like(AttemptOpened, task="a", kind="work"))
    least = [500, 1_000, 2_000, 2_000]
    assert all(low <= pause <= 2 * low for low, pause in zip(least, pauses_ms, strict=True))


def test_a_task_that_rests_after_a_stale_revision_leaves_its_room_to_others() -> None:
    limits = Limits(max_open=1)
    run = given().when(start(task("a", priority=2), task("b"), limits=limits))
    _stale(_stale(run)).then(DecompositionRefused, like(TaskBackedOff, task="a"), like(AttemptOpened, task="b"))


def test_a_proposal_whose_revision_went_by_while_it_was_judged_rests_the_second_time() -> None:
    run = given().when(start(task("a"), task("b"), verifiers=JUDGED)).starts("b")
    for refused in (1, 2):
        proposed = run.submits("a", decompose(task("c"), expected_graph_revision=run.state.graph_revision))
        moved = proposed.supersedes("b" if refused == 1 else "b1", task(f"b{refused}"))
        run = moved.judges("a", "pass")
    run.then(VerdictRecorded, like(DecompositionRefused, spent=False), like(TaskBackedOff, task="a", review=False))


def test_conflicts_are_forgotten_when_a_decomposition_is_accepted() -> None:
    accepted = _stale(run_of(task("a"))).submits("a", decompose(task("c")))
    accepted.then_task("a", conflicts=0, decompositions=1)


# Composition contracts.


def _composed(contract: Json, *, judged: bool) -> Scenario:
    run = given().when(start(task("root"), verifiers=JUDGED if judged else None))
    asked = run.submits("root", decompose(task("c"), composition_contract=contract))
    return asked.judges("root", "pass") if judged else asked


def test_a_composition_contract_is_kept_for_the_integration_whoever_judged_the_decomposition() -> None:
    for judged in (False, True):
        composed = done(_composed({"b": 1, "a": ["x"]}, judged=judged), "c")
        assert bytes(composed.task("root").composition) == b'{"a":["x"],"b":1}'
        composed.then(VerdictRecorded, *composed.events[1:-1], like(AttemptOpened, task="root", phase="integrate"))


def test_a_composition_contract_is_part_of_the_input_of_the_integration_and_of_its_review() -> None:
    work: set[str] = set()
    reviews: set[str] = set()
    contracts: list[Json] = [{"a": 1}, {"a": 2}, None]
    for contract in contracts:
        composed = done(_composed(contract, judged=False), "c")
        for run, hashes in ((composed, work), (composed.submits("root", candidate(1)), reviews)):
            attempt = run.task("root").attempt
            assert attempt is not None
            hashes.add(attempt.input_hash)
    assert len(work) == len(reviews) == 3


def test_the_next_decomposition_brings_a_contract_of_its_own() -> None:
    run = given().when(start(task("root"), max_decompositions=3))
    first = done(run.submits("root", decompose(task("c"), composition_contract="one")), "c")
    second = done(first.submits("root", decompose(task("d"), composition_contract="two")), "d")
    assert bytes(second.task("root").composition) == b'"two"'
    third = second.submits("root", decompose(task("e")))
    assert bytes(third.task("root").composition) == b"null"


def test_without_children_of_its_own_a_reusing_task_may_have_a_contract_too() -> None:
    run = done(run_of(task("root"), task("old")), "old")
    reused = run.submits("root", decompose(reuse=("old",), composition_contract=["keep"]))
    assert bytes(reused.task("root").composition) == b'["keep"]'
