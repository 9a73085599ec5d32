"""Another task takes the place of one: what it takes over, what stops, and what the run makes of it."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.codes import Code
from dagbok.events.run.commands import PauseRun, ResumeRun
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptOpened,
    DecompositionAccepted,
    DecompositionRefused,
    RunReopened,
    RunResumed,
    RunSucceeded,
    TaskBackedOff,
    TaskCancelled,
    TasksAdded,
    TaskSuperseded,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import Spec
from dagbok.testing import (
    CLAIM,
    Limits,
    Scenario,
    act,
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
from tests.spec.steps import done, fail_fast

TERMINAL = failure(terminal=True)


def test_a_replacement_takes_the_place_of_a_task_and_of_a_root() -> None:
    run = run_of(task("a"), task("b", depends_on=("a",)))
    other = run.supersedes("a", task("a2")).then(
        AttemptClosed("a", 1, "task_superseded"),
        TaskSuperseded("a", "a2", graph_revision=2),
        like(TasksAdded, graph_revision=2),
        like(AttemptOpened, task="a2", epoch=1, kind="work"),
    )
    other.then_task("a", status="superseded", superseded_by="a2", dependents=(), attempt=None)
    other.then_task("b", deps=("a2",), open_deps=1).then_task("a2", dependents=("b",))
    root = other.supersedes("b", task("b2", depends_on=("a2",))).then_state(roots=("b2",), open_roots=1)
    root.then_task("b", root=False).then_task("b2", root=True, status="waiting")
    done(root, "a2", "b2").then_state(status="succeeded")


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("waiting", run_of(task("z"), task("a", depends_on=("z",)))),
        ("open", run_of(task("a"), task("z"))),
        ("running", run_of(task("a"), task("z")).starts("a")),
        ("review", run_of(task("a"), task("z")).submits("a", candidate(1)).starts("a")),
        ("backoff", run_of(task("a"), task("z")).fails("a")),
        ("review in backoff", run_of(task("a"), task("z")).submits("a", candidate(1)).judges("a", "error")),
        ("blocked", run_of(task("a"), task("z")).submits("a", blocked())),
        ("failed", run_of(task("a"), task("z")).fails("a", TERMINAL)),
        ("cancelled", run_of(task("a"), task("z")).cancels("a")),
    ],
)
def test_a_task_of_every_status_that_is_not_settled_may_be_superseded(name: str, run: Scenario) -> None:
    other = run.supersedes("a", task("a2"))
    other.then_task("a", status="superseded", attempt=None, staged=None).then_task("a2", status="ready", root=True)
    other.then_state(blocked={}, failed={}, cancelled={}, reviews=[])
    assert "a" not in other.state.active
    done(other, "z", "a2").then_state(status="succeeded")


def test_nothing_takes_the_place_of_what_is_settled() -> None:
    verified = done(run_of(task("a"), task("z")), "a")
    verified.supersedes("a", task("a2")).then_refused(Code.VERSION_CONFLICT, naming="verified")
    superseded = run_of(task("a")).supersedes("a", task("a2"))
    superseded.supersedes("a", task("a3")).then_refused(Code.VERSION_CONFLICT, naming="superseded")
    superseded.supersedes("a2", task("a3")).then_task("a3", status="ready", root=True)


def test_a_late_result_of_the_old_task_is_refused() -> None:
    other = run_of(task("a")).starts("a").supersedes("a", task("a2"))
    other.submits("a", candidate(1), claim=CLAIM).then_refused(Code.STALE_ATTEMPT)
    other.fails("a", claim=CLAIM).then_refused(Code.STALE_ATTEMPT)


def test_the_failed_root_of_a_failed_run_is_superseded_and_the_run_goes_on() -> None:
    """Case 6 of the reference."""
    failed = run_of(task("a")).fails("a", TERMINAL).then_state(status="failed")
    other = failed.supersedes("a", task("a2")).then(
        TaskSuperseded, TasksAdded, RunReopened, like(AttemptOpened, task="a2")
    )
    done(other, "a2").then(VerdictRecorded, TaskVerified, RunSucceeded)


def test_a_run_that_failed_for_a_cancelled_task_goes_on_with_its_replacement() -> None:
    failed = run_of(task("a"), task("b", depends_on=("a",))).cancels("a").then_state(status="failed")
    other = failed.supersedes("a", task("a2")).then(
        TaskSuperseded, TasksAdded, RunReopened, like(AttemptOpened, task="a2")
    )
    done(other.then_state(cancelled={}), "a2", "b").then_state(status="succeeded")


def test_a_blocked_run_goes_on_with_the_replacement() -> None:
    run_of(task("a")).submits("a", blocked()).supersedes("a", task("a2")).then(
        TaskSuperseded, TasksAdded, RunReopened, like(AttemptOpened, task="a2")
    ).then_state(status="running", blocked_by="")


def test_a_paused_run_takes_a_replacement_and_opens_it_later() -> None:
    run = run_of(task("a")).when(PauseRun()).supersedes("a", task("a2"))
    run.then(AttemptClosed, TaskSuperseded, TasksAdded).when(ResumeRun()).then(
        RunResumed, like(AttemptOpened, task="a2")
    )


def test_under_fail_fast_a_replacement_of_the_failed_task_reopens_the_run() -> None:
    run = fail_fast(task("a"), task("b")).fails("a", TERMINAL).supersedes("a", task("a2"))
    run.then(TaskSuperseded, TasksAdded, RunReopened, like(AttemptOpened, task="b"), like(AttemptOpened, task="a2"))


def test_the_revision_of_the_graph_is_compared_when_it_is_named() -> None:
    run = run_of(task("a"), task("z")).supersedes("z", task("z2"), expected_graph_revision=1)
    run.supersedes("a", task("a2"), expected_graph_revision=1).then_refused(Code.VERSION_CONFLICT, naming="revision 2")
    run.supersedes("a", task("a2"), expected_graph_revision=2).then_state(graph_revision=3)


SQUARE = (task("a"), task("b", depends_on=("a",)), task("c", depends_on=("b",)), task("z"))


@pytest.mark.parametrize(
    ("replacement", "code", "named"),
    [
        (task("z"), Code.IDEMPOTENCY_CONFLICT, "z is taken"),
        (task("b"), Code.IDEMPOTENCY_CONFLICT, "b is taken"),
        (task("b2", depends_on=("b2",)), Code.INVALID_SPEC, "itself"),
        (task("b2", depends_on=("nobody",)), Code.UNKNOWN_DEPENDENCY, "'nobody'"),
        (task("b2", depends_on=("b",)), Code.CYCLE, "b"),
        (task("b2", depends_on=("c",)), Code.CYCLE, "c"),
        (task("b2", depends_on=("a", "z"), goal=" "), Code.INVALID_SPEC, "goal"),
        (task("b2", verifier="lax"), Code.WEAKER_VERIFIER, "'lax'"),
        (task("b2", verifier="nobody"), Code.VERIFIER_UNAVAILABLE, "'nobody'"),
        (task("b2", depends_on=("a", "z", "a")), Code.BUDGET_EXHAUSTED, "4 edges"),
    ],
)
def test_a_replacement_is_held_to_the_rules_of_the_graph(replacement: Spec, code: Code, named: str) -> None:
    verifiers = {"check": pin(assurance="formal"), "lax": pin()}
    run = given().when(start(*SQUARE, verifiers=verifiers, limits=Limits(max_edges=3)))
    run.supersedes("b", replacement).then_refused(code, naming=named).then_state(graph_revision=1, edges=2)


def test_a_replacement_counts_among_the_tasks() -> None:
    run = given().when(start(task("a"), limits=Limits(max_tasks=2))).supersedes("a", task("a2"))
    run.supersedes("a2", task("a3")).then_refused(Code.BUDGET_EXHAUSTED, naming="3 tasks")


def test_a_replacement_does_not_depend_on_what_is_gone() -> None:
    run = run_of(task("a"), task("b"), task("z")).supersedes("a", task("a2"))
    run.supersedes("b", task("b2", depends_on=("a",))).then_refused(Code.UNKNOWN_DEPENDENCY, naming="superseded by a2")


# Supersede a task that asked for others.


def _planned(*children: Spec, others: tuple[Spec, ...] = ()) -> Scenario:
    return run_of(task("plan"), *others).submits("plan", decompose(*children)).starts(children[0].id)


def test_the_children_of_the_old_task_stop_with_it() -> None:
    grown = _planned(task("c1"), task("c2")).submits("c2", decompose(task("d")))
    grown.supersedes("plan", task("plan2")).then(
        AttemptClosed("c1", 1, "task_superseded"),
        AttemptClosed("d", 1, "task_superseded"),
        like(TaskSuperseded, task="plan"),
        TaskCancelled("c1", "parent_superseded"),
        TaskCancelled("c2", "parent_superseded"),
        TaskCancelled("d", "parent_superseded"),
        TasksAdded,
        like(AttemptOpened, task="plan2"),
    ).then_state(cancelled={})


def test_children_that_are_verified_stay_so() -> None:
    half = done(_planned(task("c1"), task("c2")), "c2")
    half.supersedes("plan", task("plan2")).then_task("c1", status="cancelled").then_task("c2", status="verified")


def test_children_that_others_wait_for_go_on() -> None:
    """`other` reuses a child of the old task, and so needs what that child waits for."""
    grown = _planned(task("c0"), task("c1", depends_on=("c0",)), task("c2"), others=(task("other"),))
    reused = grown.submits("other", decompose(reuse=("c1",)))
    gone = reused.supersedes("plan", task("plan2"))
    statuses = {id: node.status for id, node in gone.state.tasks.items()}
    assert statuses == {
        "plan": "superseded",
        "other": "waiting",
        "c0": "running",
        "c1": "waiting",
        "c2": "cancelled",
        "plan2": "ready",
    }
    done(gone, "plan2", "c0", "c1", "other").then_state(status="succeeded")


def test_children_that_the_replacement_depends_on_go_on() -> None:
    """The plan was right, and only who puts the parts together is another."""
    grown = _planned(task("c1"), task("c2", depends_on=("c1",)), task("c3"))
    other = grown.supersedes("plan", task("plan2", depends_on=("c2",)))
    other.then_task("c1", status="running").then_task("c2", status="waiting").then_task("c3", status="cancelled")
    done(other, "c1", "c2", "plan2").then_state(status="succeeded")


def test_what_a_replacement_took_over_ends_with_it() -> None:
    """Who created the child is gone, so whoever waits for it last ends it, whether cancelled or superseded."""
    grown = _planned(task("c0"), task("c1", depends_on=("c0",)), others=(task("z"),))
    other = grown.supersedes("plan", task("plan2", depends_on=("c1",))).then_task("c0", status="running")
    for ended in (other.cancels("plan2"), other.supersedes("plan2", task("plan3"))):
        ended.then_task("c0", status="cancelled", attempt=None).then_task("c1", status="cancelled")
    third = other.supersedes("plan2", task("plan3", depends_on=("c1",))).then_task("c1", status="waiting")
    third.cancels("plan3").then(
        AttemptClosed("c0", 1, "task_cancelled"),
        TaskCancelled("plan3", "requested"),
        TaskCancelled("c0", "parent_cancelled"),
        TaskCancelled("c1", "parent_cancelled"),
    )


def test_what_was_kept_for_another_task_ends_with_that_one() -> None:
    """First the plan is replaced, and the child goes on for `other`; then nobody needs it any more."""
    grown = _planned(task("c1"), task("c2"), others=(task("other"), task("z")))
    grown = grown.submits("c1", decompose(task("d1"))).submits("other", decompose(reuse=("c1",)))
    kept = grown.supersedes("plan", task("plan2")).then_task("c1", status="waiting").then_task("d1", status="ready")
    kept.then_task("c2", status="cancelled")
    kept.cancels("plan2").then_task("c1", status="waiting")
    kept.cancels("other").then_task("c1", status="cancelled").then_task("d1", status="cancelled")


def test_what_was_kept_stays_while_one_of_several_needs_it() -> None:
    grown = _planned(task("c1"), others=(task("x"), task("y"), task("z")))
    both = grown.submits("x", decompose(reuse=("c1",))).submits("y", decompose(reuse=("c1",)))
    one = both.supersedes("plan", task("plan2")).cancels("x").then_task("c1", status="running")
    one.cancels("y").then_task("c1", status="cancelled")


def test_what_a_task_reuses_of_a_plan_that_goes_on_is_not_ended_with_it() -> None:
    grown = _planned(task("c1"), others=(task("other"),)).submits("other", decompose(reuse=("c1",)))
    grown.cancels("other").then_task("c1", status="running").then_task("plan", status="waiting")


def test_a_first_task_that_others_wait_for_is_never_ended_with_them() -> None:
    run = run_of(task("first"), task("b", depends_on=("first",)), task("z"))
    run.cancels("b").then_task("first", status="ready")


def test_a_child_is_superseded_alone_and_its_parent_waits_for_the_other() -> None:
    grown = _planned(task("c1"), task("c2", depends_on=("c1",)))
    other = grown.supersedes("c1", task("c9"))
    other.then_task("plan", deps=("c9", "c2"), open_deps=2, status="waiting").then_task("c2", deps=("c9",))
    other.then_task("c9", created_by="plan", depth=1)
    done(other, "c9", "c2", "plan").then_state(status="succeeded")


def test_what_a_replaced_child_created_stops_with_it() -> None:
    grown = _planned(task("c1"), task("c2")).submits("c1", decompose(task("d1")))
    grown.supersedes("c1", task("c9")).then_task("d1", status="cancelled").then_task("c2", status="ready")


def test_the_replacement_of_a_child_belongs_to_the_branch() -> None:
    """It ends with the task above, as the child would have."""
    other = _planned(task("c1")).supersedes("c1", task("c9"))
    other.cancels("plan").then_task("c9", status="cancelled")


def test_a_replacement_may_be_decomposed_as_often_as_any_task() -> None:
    other = _planned(task("c1")).supersedes("plan", task("plan2"))
    other.submits("plan2", decompose(task("e1"))).then(
        DecompositionAccepted, TasksAdded, like(AttemptOpened, task="e1")
    )


def test_a_proposal_that_is_being_judged_goes_with_its_task() -> None:
    verifiers = {"check": pin("candidate", "decomposition")}
    judged = given().when(start(task("a"), verifiers=verifiers)).submits("a", decompose(task("c")))
    other = judged.supersedes("a", task("a2"))
    other.then_task("a", staged=None, status="superseded").then_state(reviews=[])
    assert "c" not in other.state.tasks


def test_a_proposal_that_reuses_what_is_superseded_while_it_is_judged_goes_back_to_its_worker() -> None:
    """Its verifier has never seen the replacement; the worker is told of it and loses no attempt."""
    verifiers = {"check": pin("candidate", "decomposition")}
    judged = given().when(start(task("a"), task("old"), verifiers=verifiers)).submits("a", decompose(reuse=("old",)))
    back = judged.supersedes("old", task("new")).judges("a", "pass")
    back.then(
        VerdictRecorded,
        like(DecompositionRefused, code="unknown_dependency", spent=False),
        like(AttemptOpened, task="a", kind="work"),
    ).then_task("a", status="ready", failures=0, conflicts=1)
    refused = back.events[1]
    assert isinstance(refused, DecompositionRefused)
    assert refused.reason.endswith("which is superseded by new")
    back.submits("a", decompose(reuse=("new",))).judges("a", "pass").then_task("a", status="waiting", deps=("new",))


def test_a_repeated_start_is_known_after_the_graph_has_changed() -> None:
    run = run_of(task("a")).supersedes("a", task("a2"))
    run.when(start(task("a"))).then_repeated(of=0)


def test_what_is_recorded_of_a_replacement_tells_whose_place_it_takes() -> None:
    added = run_of(task("a")).supersedes("a", task("a2", contract={"k": 1})).events[2]
    assert isinstance(added, TasksAdded)
    (entry,) = added.tasks
    assert (entry.supersedes, entry.created_by, bytes(entry.spec.contract)) == ("a", None, b'{"k":1}')
    assert msgspec.json.decode(msgspec.json.encode(added), type=TasksAdded) == added


def test_after_a_backoff_that_was_superseded_its_timer_is_stale() -> None:
    resting = run_of(task("a")).fails("a").then_task("a", status="backoff")
    assert isinstance(resting.events[-1], TaskBackedOff)
    timer = act.fire_timer(resting.state, "backoff", "a")
    other = resting.supersedes("a", task("a2")).then_state(backoffs=[])
    other.when(timer, now_ms=timer.deadline_ms).then_refused(Code.STALE_ATTEMPT)
