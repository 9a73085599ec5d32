"""Who may judge what a task brings into the graph: nobody weaker than its own policy allows (case 16 of the
reference)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dagbok.events.codes import Code
from dagbok.events.run.events import (
    AttemptOpened,
    DecompositionAccepted,
    DecompositionProposed,
    DecompositionRefused,
    RunBlocked,
    TaskBlocked,
    TasksAdded,
    VerdictRecorded,
)
from dagbok.events.run.values import Spec, VerifierPin
from dagbok.testing import Scenario, decompose, failure, given, like, pin, start, task

VERIFIERS: Mapping[str, VerifierPin] = {
    "formal": pin(assurance="formal"),
    "check": pin(),
    "check-2": pin(),
    "person": pin(assurance="human_review"),
    "judge": pin("decomposition"),
    "strict-judge": pin("decomposition", assurance="formal"),
    "board": pin("decomposition", assurance="human_review"),
}
ALLOWED = {
    "formal": ("formal", "person"),
    "check": ("formal", "check", "person"),
    "person": ("formal", "check", "person"),
}
"""By the verifier of a task: which ones its children may name (ADR 14)."""


def _run(root: Spec) -> Scenario:
    return given().when(start(root, verifiers=VERIFIERS))


def _asks(root: Spec, *children: Spec) -> Scenario:
    return _run(root).submits(root.id, decompose(*children))


def _refused(run: Scenario, named: str) -> None:
    run.then(
        like(DecompositionRefused, code="weaker_verifier", spent=True),
        like(TaskBlocked, code="weaker_verifier"),
        like(RunBlocked, code="weaker_verifier"),
    )
    event = run.events[0]
    assert isinstance(event, DecompositionRefused)
    assert named in event.reason


@pytest.mark.parametrize("parent", ALLOWED)
@pytest.mark.parametrize("child", ALLOWED)
def test_a_child_has_a_verifier_of_at_least_the_assurance_of_its_parent_or_a_person(parent: str, child: str) -> None:
    asked = _asks(task("root", verifier=parent), task("c", verifier=child))
    if child in ALLOWED[parent]:
        asked.then(DecompositionAccepted, TasksAdded, like(AttemptOpened, task="c"))
    else:
        _refused(asked, f"'{child}'")


def test_a_person_in_between_does_not_lower_what_stands_above() -> None:
    """Else a worker would rid its grandchildren of the proof that its own result needs."""
    reviewed = _asks(task("root", verifier="formal"), task("c", verifier="person"))
    reviewed.submits("c", decompose(task("d"))).then_task("c", status="blocked")
    reviewed.submits("c", decompose(task("d", verifier="formal"))).then_task("c", status="waiting")
    below = reviewed.submits("c", decompose(task("d", verifier="person")))
    below.submits("d", decompose(task("e"))).then(
        like(DecompositionRefused, code="weaker_verifier"), TaskBlocked, RunBlocked
    )


def test_a_person_may_approve_a_plan_whose_parts_are_checked_by_programs() -> None:
    plan = task("root", verifier="person", proposal_verifier="board")
    _asks(plan, task("c1"), task("c2", verifier="formal")).judges("root", "pass").then(
        VerdictRecorded, DecompositionAccepted, TasksAdded, AttemptOpened, AttemptOpened
    )


def test_a_breach_is_not_retried_and_spends_no_attempt_of_the_worker() -> None:
    run = _asks(PROVEN, task("c"))
    run.then_task("root", status="blocked", failures=0)
    run.resolves("root").submits("root", decompose(task("c", verifier="formal"))).then_task("root", status="waiting")


def test_a_weaker_judge_of_decompositions_is_refused_too() -> None:
    _refused(_asks(PROVEN, task("c", verifier="formal", proposal_verifier="judge")), "'judge'")
    for judge in ("strict-judge", "board"):
        _asks(PROVEN, task("c", verifier="formal", proposal_verifier=judge)).then(
            DecompositionAccepted, TasksAdded, AttemptOpened
        )


def test_one_weak_child_among_many_refuses_all() -> None:
    strong, weak = (task(f"c{place}", verifier="formal") for place in (1, 3)), task("c2")
    _refused(_asks(PROVEN, weak, *strong), "c2")


PROVEN = task("root", verifier="formal")
LISTED = task("root", verifier="formal", child_verifiers=("check", "judge"))


def test_where_the_verifiers_of_children_are_listed_those_are_the_only_ones() -> None:
    """The list is the policy, also where it allows weaker ones than the parent's own."""
    _asks(LISTED, task("c")).then(DecompositionAccepted, TasksAdded, AttemptOpened)
    _asks(LISTED, task("c", proposal_verifier="judge")).then(DecompositionAccepted, TasksAdded, AttemptOpened)
    for child in (
        task("c", verifier="check-2"),
        task("c", verifier="formal"),
        task("c", proposal_verifier="board"),
        task("c", verifier="person"),
    ):
        _refused(_asks(LISTED, child), "may name check, judge")


def test_an_empty_list_allows_no_children_of_its_own() -> None:
    none = task("root", child_verifiers=())
    _refused(_asks(none, task("c")), "'check'")
    given().when(start(none, task("other"), verifiers=VERIFIERS)).submits("root", decompose(reuse=("other",))).then(
        like(DecompositionAccepted, reused=("other",))
    )


def test_the_list_holds_for_everything_below() -> None:
    grown = _asks(LISTED, task("c"))
    grown.submits("c", decompose(task("d"))).then_task("c", status="waiting")
    grown.submits("c", decompose(task("d", verifier="check-2"))).then_task("c", status="blocked")


def test_a_list_below_may_only_be_narrower() -> None:
    """What a child lets its children name is named by the child, and held to the list above."""
    narrower = _asks(LISTED, task("c", child_verifiers=("check",))).then_task("root", status="waiting")
    narrower.submits("c", decompose(task("d", proposal_verifier="judge"))).then_task("c", status="blocked")
    _refused(_asks(LISTED, task("c", child_verifiers=("check", "person"))), "'person'")


def test_without_a_list_above_a_child_cannot_list_a_weaker_one() -> None:
    _refused(_asks(PROVEN, task("c", verifier="formal", child_verifiers=("check",))), "'check'")
    _asks(PROVEN, task("c", verifier="formal", child_verifiers=("person",))).then_task("root", status="waiting")


def test_a_list_names_verifiers_that_the_run_is_bound_to() -> None:
    given().when(start(task("root", child_verifiers=("nobody",)), verifiers=VERIFIERS)).then_refused(
        Code.VERIFIER_UNAVAILABLE, naming="'nobody'"
    )
    _asks(task("root"), task("c", child_verifiers=("nobody",))).then_task("root", status="blocked")


def test_first_tasks_name_any_verifier() -> None:
    """They are the author's, not a worker's."""
    given().when(start(task("a", verifier="formal"), task("b", verifier="person"), verifiers=VERIFIERS)).then_state(
        status="running"
    )


def test_a_tasks_own_decompositions_are_judged_by_whom_it_names() -> None:
    """The verifier for decompositions judges them and nothing else; the other judges the candidate."""
    root = task("root", proposal_verifier="judge")
    proposed = _asks(root, task("c"))
    proposed.then(DecompositionProposed, like(AttemptOpened, task="root", kind="verify", key="judge"))
    proposed.judges("root", "pass").then(
        VerdictRecorded, like(DecompositionAccepted, judge="judge"), TasksAdded, AttemptOpened
    )


def test_the_policy_is_checked_before_a_verifier_is_asked() -> None:
    _refused(_asks(task("root", verifier="formal", proposal_verifier="judge"), task("c")), "'check'")


def test_the_policy_is_checked_again_when_the_proposal_passes() -> None:
    """The run was amended while the proposal was judged: now the child's verifier is weaker than the parent's."""
    root = task("root", verifier="formal", proposal_verifier="judge")
    proposed = given().when(start(root, verifiers={**VERIFIERS, "proof": pin(assurance="formal")}))
    proposed = proposed.submits("root", decompose(task("c", verifier="proof")))
    weaker = proposed.amends(verifiers={"proof": pin()})
    weaker.judges("root", "pass").then(
        VerdictRecorded,
        like(DecompositionRefused, code="weaker_verifier"),
        like(TaskBlocked, code="weaker_verifier"),
        RunBlocked,
    )


# Replacements.


def test_a_replacement_of_a_first_task_is_judged_no_weaker() -> None:
    run = _run(PROVEN)
    run.supersedes("root", task("new")).then_refused(Code.WEAKER_VERIFIER, naming="'check'")
    for verifier in ("formal", "person"):
        run.supersedes("root", task("new", verifier=verifier)).then_task("new", status="ready")


def test_a_replacement_of_a_child_is_held_to_the_policy_of_its_parent() -> None:
    grown = _asks(LISTED, task("c"))
    grown.supersedes("c", task("c2", verifier="formal")).then_refused(Code.WEAKER_VERIFIER, naming="'formal'")
    grown.supersedes("c", task("c2", proposal_verifier="judge")).then_task("c2", status="ready")


def test_a_replacement_of_a_replacement_is_held_to_the_same_policy() -> None:
    twice = _asks(LISTED, task("c")).supersedes("c", task("c2")).fails("c2", failure(terminal=True))
    twice.supersedes("c2", task("c3", verifier="person")).then_refused(Code.WEAKER_VERIFIER)
    twice.supersedes("c2", task("c3")).then_task("c3", created_by="root")


def test_below_a_replaced_parent_its_policy_holds_for_what_goes_on() -> None:
    """A child that is kept, because another task waits for it, is still held to the list of who created it."""
    run = given().when(start(LISTED, task("other"), verifiers=VERIFIERS)).submits("root", decompose(task("c")))
    kept = run.submits("other", decompose(reuse=("c",))).supersedes("root", task("new", verifier="formal"))
    kept.submits("c", decompose(task("d", verifier="person"))).then_task("c", status="blocked")
    kept.submits("c", decompose(task("d"))).then_task("c", status="waiting")


def test_the_judge_of_the_decompositions_above_judges_those_of_children_that_name_none() -> None:
    root = task("root", proposal_verifier="judge")
    run = given().when(start(root, verifiers={"check": pin(), "judge": pin("decomposition")}, max_depth=3))
    child = (
        run.submits("root", decompose(task("child"))).judges("root", "pass").submits("child", decompose(task("leaf")))
    )
    child.then(like(DecompositionProposed, task="child"), like(AttemptOpened, task="child", key="judge"))
