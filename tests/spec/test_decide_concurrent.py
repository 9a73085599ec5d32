"""Several tasks of a run ask for tasks at the same time; revisions that went by; what children make up together."""

from __future__ import annotations

from dagbok.events.canonical import Json
from dagbok.events.run.events import (
    AttemptOpened,
    DecompositionAccepted,
    DecompositionProposed,
    DecompositionRefused,
    RunBlocked,
    TaskBackedOff,
    TaskBlocked,
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


def test_two_that_would_wait_for_each_other_the_second_is_told_and_asked_again() -> None:
    """It could not know; whoever says it again knows."""
    run = run_of(task("a"), task("b")).starts("a").starts("b").submits("a", decompose(reuse=("b",)))
    told = run.submits("b", decompose(task("c"), reuse=("a",))).then_task("b", status="ready", deps=(), conflicts=1)
    told.submits("b", decompose(task("c"), reuse=("a",))).then_task("b", status="blocked", deps=())
    through = run_of(task("a"), task("b")).submits("a", decompose(task("c"), reuse=("b",)))
    through.submits("b", decompose(reuse=("c",))).then_task("b", status="waiting", deps=("c",))
    through.submits("b", decompose(task("d", depends_on=("a",)))).then_task("b", status="ready", conflicts=1)


def test_two_proposals_that_would_wait_for_each_other_pass_one_by_one() -> None:
    run = given().when(start(task("a"), task("b"), verifiers=JUDGED))
    both = run.submits("a", decompose(reuse=("b",))).submits("b", decompose(reuse=("a",)))
    second = both.judges("a", "pass").judges("b", "pass")
    assert isinstance(second.events[1], DecompositionRefused)
    assert (second.events[1].code, second.events[1].spent) == ("cycle", False)


# Proposals that the graph has overtaken (ADR 13): they cost nothing as long as the graph changes.


def _moved(run: Scenario) -> Scenario:
    """Somebody replaces a task that is of no interest here."""
    last = next(reversed([id for id in run.state.tasks if id.startswith("z")]))
    return run.supersedes(last, task(f"z{len(run.state.tasks)}"))


def _stale(run: Scenario) -> Scenario:
    revision = run.state.graph_revision
    return _moved(run).submits("a", decompose(task("c"), expected_graph_revision=revision))


def test_a_revision_that_went_by_before_the_attempt_was_opened_is_a_breach() -> None:
    """Who is asked on the present graph and names another one would do so for ever: it is blocked, as after any other
    breach."""
    once = _stale(run_of(task("a"), task("z0"))).then_task("a", status="ready", conflicts=1)
    for run, revision in ((once, 1), (once, 7), (run_of(task("a")), 7)):
        run.submits("a", decompose(task("c"), expected_graph_revision=revision)).then(
            like(DecompositionRefused, code="version_conflict", spent=True),
            like(TaskBlocked, task="a", code="version_conflict"),
            *[RunBlocked] * (len(run.state.tasks) == 1),
        )


def test_a_proposal_that_is_stale_and_wrong_is_told_the_one_and_then_the_other() -> None:
    wrong = decompose(task("c", depends_on=("nobody",)), expected_graph_revision=1)
    told = _moved(run_of(task("a"), task("z0"))).submits("a", wrong).then_task("a", status="ready", conflicts=1)
    present = decompose(task("c", depends_on=("nobody",)), expected_graph_revision=2)
    told.submits("a", present).then(DecompositionRefused, like(TaskBlocked, code="unknown_dependency"))


def test_what_is_wrong_whatever_the_graph_is_costs_its_worker_the_chance() -> None:
    for wrong in (
        decompose(task("c", depends_on=("nobody",))),
        decompose(task("c", depends_on=("a",))),
        decompose(task("c"), task("c")),
        decompose(),
    ):
        _moved(run_of(task("a"), task("z0"))).submits("a", wrong).then_task("a", status="blocked", conflicts=0)


def test_a_name_that_another_plan_took_meanwhile_costs_nothing() -> None:
    run = run_of(task("a"), task("b")).starts("b").submits("a", decompose(task("c")))
    told = run.submits("b", decompose(task("c"))).then(
        like(DecompositionRefused, code="idempotency_conflict", spent=False), like(AttemptOpened, task="b")
    )
    told.submits("b", decompose(task("c"))).then(DecompositionRefused, like(TaskBlocked, code="idempotency_conflict"))
    told.submits("b", decompose(task("d"))).then_task("b", status="waiting", conflicts=0)


def test_the_first_proposal_that_is_overtaken_is_answered_at_once_and_the_next_ones_ever_later() -> None:
    """In a run that changes all the time its worker is not asked as fast as it answers."""
    limits = Limits(backoff_base_ms=1_000, backoff_max_ms=4_000)
    run = given().when(start(task("a"), task("z0"), limits=limits))
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
    run = given().when(start(task("a", priority=2), task("b", priority=1), task("z0"), limits=limits))
    _stale(_stale(run)).then(DecompositionRefused, like(TaskBackedOff, task="a"), like(AttemptOpened, task="b"))


def test_a_proposal_whose_revision_went_by_while_it_was_judged_rests_the_second_time() -> None:
    run = given().when(start(task("a"), task("b"), verifiers=JUDGED)).starts("b")
    for refused in (1, 2):
        proposed = run.submits("a", decompose(task("c"), expected_graph_revision=run.state.graph_revision))
        moved = proposed.supersedes("b" if refused == 1 else "b1", task(f"b{refused}"))
        run = moved.judges("a", "pass")
    run.then(VerdictRecorded, like(DecompositionRefused, spent=False), like(TaskBackedOff, task="a", review=False))


def test_conflicts_are_forgotten_when_a_decomposition_is_accepted() -> None:
    accepted = _stale(run_of(task("a"), task("z0"))).submits("a", decompose(task("c")))
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
