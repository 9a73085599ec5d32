"""Tasks that ask for tasks: what enters the graph, what is refused and why, and how the parent goes on."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.codes import Code
from dagbok.events.run.commands import CancelRun, ResolveBlock
from dagbok.events.run.events import (
    AttemptOpened,
    CandidateSubmitted,
    DecompositionAccepted,
    DecompositionProposed,
    DecompositionRefused,
    RunBlocked,
    RunSucceeded,
    TaskBackedOff,
    TaskBlocked,
    TasksAdded,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import Decompose, Limits, Spec
from dagbok.testing import (
    CLAIM,
    Scenario,
    blocked,
    candidate,
    decompose,
    failure,
    given,
    like,
    pin,
    run_of,
    start,
    task,
)

ROOT = run_of(task("root")).starts("root")
JUDGED = {"check": pin(), "plan-check": pin("decomposition", version="4")}


def _done(run: Scenario, *tasks: str) -> Scenario:
    for id in tasks:
        run = run.starts(id).submits(id, candidate(id)).judges(id, "pass")
    return run


def test_without_a_verifier_for_it_a_decomposition_is_judged_by_the_rules_of_the_graph() -> None:
    accepted = ROOT.submits("root", decompose(task("a"), task("b", depends_on=("a",))))
    accepted.then(
        like(DecompositionAccepted, task="root", epoch=1, claim=CLAIM, judge="structure", new=("a", "b"), reused=()),
        like(TasksAdded, graph_revision=2),
        like(AttemptOpened, task="a", kind="work", phase="solve"),
    )
    accepted.then_state(graph_revision=2, edges=3)
    accepted.then_task("root", status="waiting", open_deps=2, deps=("a", "b"), decompositions=1, attempt=None)
    accepted.then_task("b", depth=1, created_by="root", status="waiting", dependents=("root",))


def test_the_parent_integrates_when_its_children_are_verified() -> None:
    both = _done(ROOT.submits("root", decompose(task("a"), task("b"))), "a")
    done = both.starts("b").submits("b", candidate(2)).judges("b", "pass")
    done.then(VerdictRecorded, TaskVerified, like(AttemptOpened, task="root", phase="integrate", epoch=2))
    integrated = done.starts("root").submits("root", candidate({"all": 2}))
    integrated.then(CandidateSubmitted, like(AttemptOpened, kind="verify", phase="integrate"))
    integrated.judges("root", "pass").then(VerdictRecorded, TaskVerified, RunSucceeded)


def test_what_the_children_made_is_part_of_the_input_of_the_integration() -> None:
    hashes = set()
    for value in (1, 2):
        children = ROOT.submits("root", decompose(task("a"))).starts("a").submits("a", candidate(value))
        attempt = children.judges("a", "pass").task("root").attempt
        assert attempt is not None
        hashes.add(attempt.input_hash)
    assert len(hashes) == 2


def test_a_task_that_is_there_already_is_reused() -> None:
    run = run_of(task("root"), task("done"), task("todo"))
    run = _done(run, "done").starts("root")
    reused = run.submits("root", decompose(task("new"), reuse=("done", "todo", "done")))
    reused.then(like(DecompositionAccepted, new=("new",), reused=("done", "todo")), TasksAdded, AttemptOpened)
    reused.then_task("root", deps=("new", "done", "todo"), open_deps=2).then_state(edges=3)


def test_what_is_verified_already_is_not_waited_for() -> None:
    run = _done(run_of(task("root"), task("done")), "done").starts("root")
    run.submits("root", decompose(reuse=("done",))).then(
        like(DecompositionAccepted, new=(), reused=("done",)),
        like(AttemptOpened, task="root", phase="integrate"),
    )


def test_a_child_of_a_verified_task_is_ready_at_once() -> None:
    run = _done(run_of(task("root"), task("done")), "done").starts("root")
    run.submits("root", decompose(task("a", depends_on=("done",)))).then(
        DecompositionAccepted, TasksAdded, like(AttemptOpened, task="a")
    ).then_task("a", open_deps=0)


def test_reusing_what_the_parent_waited_for_adds_no_edge() -> None:
    run = _done(run_of(task("first"), task("root", depends_on=("first",))), "first").starts("root")
    run.submits("root", decompose(task("a"), reuse=("first",))).then_state(edges=2).then_task(
        "root", deps=("first", "a"), open_deps=1
    )


def test_many_children_are_linked_in_any_order() -> None:
    shuffled = decompose(task("c", depends_on=("b", "a")), task("b", depends_on=("a",)), task("a"))
    ROOT.submits("root", shuffled).then_task("c", open_deps=2).then_task("a", dependents=("c", "b", "root"))


# Refusals: one event with code and reason, no retry, blocked until a person resolves it.


@pytest.mark.parametrize(
    ("proposal", "code", "named"),
    [
        (decompose(), Code.INVALID_OUTCOME, "neither"),
        (decompose(task("a", depends_on=("b",)), task("b", depends_on=("a",))), Code.CYCLE, "a, b"),
        (decompose(task("a", depends_on=("root",))), Code.CYCLE, "root"),
        (decompose(reuse=("root",)), Code.CYCLE, "root"),
        (decompose(task("a", depends_on=("end",))), Code.CYCLE, "end"),
        (decompose(reuse=("end",)), Code.CYCLE, "end"),
        (decompose(task("a", depends_on=("nobody",))), Code.UNKNOWN_DEPENDENCY, "'nobody'"),
        (decompose(reuse=("nobody",)), Code.UNKNOWN_DEPENDENCY, "'nobody'"),
        (decompose(task("a"), reuse=("a",)), Code.UNKNOWN_DEPENDENCY, "'a'"),
        (decompose(task("a"), task("a")), Code.IDEMPOTENCY_CONFLICT, "a"),
        (decompose(task("end")), Code.IDEMPOTENCY_CONFLICT, "end"),
        (decompose(task("a", verifier="lax")), Code.VERIFIER_UNAVAILABLE, "'lax'"),
        (decompose(task("a", proposal_verifier="check")), Code.VERIFIER_UNAVAILABLE, "'check'"),
        (decompose(task("a", depends_on=("a",))), Code.INVALID_SPEC, "itself"),
        (decompose(task("a", goal="")), Code.INVALID_SPEC, "goal"),
        (decompose(*(task(f"t{i}") for i in range(5))), Code.BUDGET_EXHAUSTED, "5 children"),
        (decompose(*(task(f"t{i}") for i in range(4))), Code.BUDGET_EXHAUSTED, "6 tasks"),
        (decompose(task("a"), task("b"), task("c", depends_on=("a", "b"))), Code.BUDGET_EXHAUSTED, "6 edges"),
    ],
)
def test_a_breach_is_refused_once_with_its_code(proposal: Decompose, code: Code, named: str) -> None:
    limits = Limits(max_children=4, max_tasks=5, max_edges=5)
    command = start(task("root"), task("end", depends_on=("root",)), limits=limits)
    refused = given().when(command).starts("root").submits("root", proposal)
    refused.then(
        like(DecompositionRefused, task="root", epoch=1, proposal=proposal, code=code, spent=True, graph_revision=1),
        like(TaskBlocked, task="root", code=code),
        RunBlocked(code, ("root",)),
    )
    event = refused.events[0]
    assert isinstance(event, DecompositionRefused)
    assert named in event.reason
    refused.then_task("root", status="blocked", deps=()).then_state(edges=1, graph_revision=1)
    problem = refused.task("root").problem
    assert problem is not None
    assert problem.code == code


def test_of_several_breaches_the_first_in_the_order_of_the_reference_is_named() -> None:
    """The revision, then sizes, then ids, then unknown tasks, then verifiers, then circles."""
    breaches = [
        (Code.VERSION_CONFLICT, decompose(*(task("a") for _ in range(9)), expected_graph_revision=7)),
        (Code.BUDGET_EXHAUSTED, decompose(*(task("a") for _ in range(9)))),
        (Code.IDEMPOTENCY_CONFLICT, decompose(task("root"), reuse=("nobody",))),
        (Code.UNKNOWN_DEPENDENCY, decompose(task("a", verifier="lax"), reuse=("nobody",))),
        (Code.VERIFIER_UNAVAILABLE, decompose(task("a", verifier="lax", depends_on=("root",)))),
        (Code.CYCLE, decompose(task("a", depends_on=("root",)))),
    ]
    run = given().when(start(task("root"), limits=Limits(max_children=4))).starts("root")
    refusals = [run.submits("root", proposal).events[0] for _, proposal in breaches]
    assert [event.code for event in refusals if isinstance(event, DecompositionRefused)] == [
        code for code, _ in breaches
    ]


def test_the_next_attempt_after_a_breach_is_told_of_it() -> None:
    refused = ROOT.submits("root", decompose(reuse=("nobody",)))
    again = refused.when(ResolveBlock("root"))
    first, second = ROOT.task("root").attempt, again.task("root").attempt
    assert first is not None
    assert second is not None
    assert first.input_hash != second.input_hash


def test_a_stale_revision_costs_nothing_and_names_the_present_one() -> None:
    run = run_of(task("one"), task("two")).starts("one").starts("two")
    moved = run.submits("one", decompose(task("a")))
    stale = moved.submits("two", decompose(task("b"), expected_graph_revision=1))
    stale.then(
        like(DecompositionRefused, task="two", code="version_conflict", spent=False, graph_revision=2),
        like(AttemptOpened, task="two", epoch=2, kind="work", phase="solve"),
    )
    stale.then_task("two", status="ready", failures=0, lost=0)
    stale.starts("two").submits("two", decompose(task("b"), expected_graph_revision=2)).then(
        DecompositionAccepted, TasksAdded, AttemptOpened
    )


def test_without_a_revision_two_decompositions_do_not_conflict() -> None:
    """The second is put on the graph as the first left it."""
    run = run_of(task("one"), task("two")).starts("one").starts("two")
    rebased = run.submits("one", decompose(task("a"))).submits("two", decompose(task("b")))
    rebased.then(like(DecompositionAccepted, graph_revision=3), TasksAdded, AttemptOpened).then_state(graph_revision=3)


def test_depth_is_limited() -> None:
    """Depth 3 at limit 2 is refused; reusing existing tasks makes nothing deeper."""
    run = given().when(start(task("d0"), task("other"), max_depth=2)).starts("d0")
    run = run.submits("d0", decompose(task("d1"))).starts("d1").submits("d1", decompose(task("d2"))).starts("d2")
    run.submits("d2", decompose(task("d3"))).then(
        like(DecompositionRefused, code="budget_exhausted"), like(TaskBlocked, code="budget_exhausted")
    )
    run.submits("d2", decompose(reuse=("other",))).then(DecompositionAccepted)


def test_a_task_is_decomposed_as_often_as_the_run_is_pinned_to() -> None:
    once = _done(ROOT.submits("root", decompose(task("a"))), "a").starts("root")
    once.submits("root", decompose(task("b"))).then(
        like(DecompositionRefused, code="budget_exhausted"), TaskBlocked, RunBlocked
    )
    twice = given().when(start(task("root"), max_decompositions=2)).starts("root")
    twice = _done(twice.submits("root", decompose(task("a"))), "a").starts("root")
    twice.submits("root", decompose(task("b"))).then(DecompositionAccepted, TasksAdded, AttemptOpened)


def test_a_decomposition_at_the_limits_is_accepted() -> None:
    limits = Limits(max_children=2, max_tasks=3, max_edges=3)
    given().when(start(task("root"), limits=limits)).starts("root").submits(
        "root", decompose(task("a"), task("b", depends_on=("a",)))
    ).then(DecompositionAccepted, TasksAdded, AttemptOpened)


def test_a_dependency_named_twice_counts_once() -> None:
    limits = Limits(max_edges=3)
    given().when(start(task("root"), limits=limits)).starts("root").submits(
        "root", decompose(task("a"), task("b", depends_on=("a", "a")))
    ).then(DecompositionAccepted, TasksAdded, AttemptOpened).then_state(edges=3)


def test_an_unknown_worker_is_no_breach() -> None:
    """Which workers exist is not known to a decider: the task stays open, visibly, until a process serves its key."""
    ROOT.submits("root", decompose(task("a", worker="of-tomorrow"))).then(
        DecompositionAccepted, TasksAdded, like(AttemptOpened, task="a", key="of-tomorrow")
    )


def test_a_payload_that_is_no_json_is_not_recorded() -> None:
    broken = msgspec.structs.replace(task("a"), contract=msgspec.Raw(b"[1e999]"))
    refused = ROOT.submits("root", decompose(broken))
    refused.then(like(DecompositionRefused, code="invalid_spec"), TaskBlocked, RunBlocked)
    event = refused.events[0]
    assert isinstance(event, DecompositionRefused)
    assert bytes(event.proposal.tasks[0].contract) == b"null"


def test_ten_thousand_children_enter_in_one_commit() -> None:
    children = [task(f"c{i}", depends_on=(f"c{i - 1}",) if i % 2 else ()) for i in range(10_000)]
    accepted = ROOT.submits("root", decompose(*children))
    assert [type(event) for event in accepted.events[:3]] == [DecompositionAccepted, TasksAdded, AttemptOpened]
    assert len(accepted.events) == 2 + 1_000
    accepted.then_task("root", open_deps=10_000).then_state(edges=15_000)


# Judged by a verifier.


def _judged(*, spec: Spec | None = None) -> Scenario:
    root = spec or task("root", proposal_verifier="plan-check")
    return given().when(start(root, verifiers=JUDGED)).starts("root")


def test_a_verifier_for_decompositions_is_asked_before_the_graph_changes() -> None:
    proposed = _judged().submits("root", decompose(task("a")))
    proposed.then(
        like(DecompositionProposed, task="root", epoch=1, claim=CLAIM),
        like(AttemptOpened, task="root", epoch=2, kind="verify", key="plan-check", phase="solve"),
    )
    proposed.then_state(graph_revision=1).then_task("root", status="verifying", decompositions=0)
    proposed.judges("root", "pass").then(
        VerdictRecorded,
        like(DecompositionAccepted, judge="plan-check", new=("a",)),
        TasksAdded,
        like(AttemptOpened, task="a"),
    )


def test_the_verifier_of_a_task_judges_its_decompositions_when_it_is_pinned_for_them() -> None:
    both = {"check": pin("candidate", "decomposition")}
    proposed = given().when(start(task("root"), verifiers=both)).starts("root").submits("root", decompose(task("a")))
    proposed.then(DecompositionProposed, like(AttemptOpened, kind="verify", key="check"))


def test_a_breach_is_refused_before_the_verifier_is_asked() -> None:
    _judged().submits("root", decompose(reuse=("nobody",))).then(DecompositionRefused, TaskBlocked, RunBlocked)


def test_a_proposal_that_fails_its_verifier_spends_an_attempt() -> None:
    failed = _judged().submits("root", decompose(task("a"))).judges("root", "fail")
    failed.then(VerdictRecorded, like(TaskBackedOff, failures=1)).then_task("root", staged=None, failures=1)


def test_a_proposal_is_held_to_the_rules_again_when_it_passes() -> None:
    """The graph changed while it was judged: now its new task is there already. That is nobody's fault, so its worker
    is told and asked again."""
    run = given().when(start(task("one", proposal_verifier="plan-check"), task("two"), verifiers=JUDGED))
    judged = run.starts("one").starts("two").submits("one", decompose(task("a")))
    moved = judged.submits("two", decompose(task("a")))
    moved.judges("one", "pass").then(
        VerdictRecorded,
        like(DecompositionRefused, task="one", code="idempotency_conflict", spent=False),
        like(AttemptOpened, task="one", kind="work"),
    ).then_task("one", failures=0, conflicts=1)


def test_a_revision_that_became_stale_while_it_was_judged_costs_nothing() -> None:
    run = given().when(start(task("one", proposal_verifier="plan-check"), task("two"), verifiers=JUDGED))
    judged = run.starts("one").starts("two").submits("one", decompose(task("a"), expected_graph_revision=1))
    judged.submits("two", decompose(task("b"))).judges("one", "pass").then(
        VerdictRecorded,
        like(DecompositionRefused, task="one", code="version_conflict", spent=False, graph_revision=2),
        like(AttemptOpened, task="one", kind="work", phase="solve"),
    ).then_task("one", staged=None, failures=0)


def test_children_of_a_cancelled_run_do_not_enter() -> None:
    proposed = _judged().submits("root", decompose(task("a")))
    verdict_on = proposed.when(CancelRun())
    verdict_on.then_task("root", staged=None, status="cancelled")


def test_a_reused_task_that_failed_lets_the_run_fail_instead_of_waiting_for_ever() -> None:
    run = run_of(task("bad"), task("root")).starts("bad").fails("bad", failure(terminal=True)).starts("root")
    run.submits("root", decompose(reuse=("bad",))).then_state(status="failed")


def test_a_reused_task_that_is_blocked_blocks_the_run() -> None:
    run = run_of(task("stuck"), task("root")).starts("stuck").submits("stuck", blocked()).starts("root")
    run.submits("root", decompose(reuse=("stuck",))).then(DecompositionAccepted, like(RunBlocked, tasks=("stuck",)))
