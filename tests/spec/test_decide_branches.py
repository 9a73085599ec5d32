"""Edges with a condition: which branches run, what is skipped, and where branches join."""

from __future__ import annotations

import pytest

from dagbok.events.canonical import Json
from dagbok.events.codes import Code
from dagbok.events.run.commands import CancelRun, PauseRun, ResumeRun
from dagbok.events.run.events import (
    AttemptOpened,
    DecompositionAccepted,
    RunPaused,
    RunResumed,
    RunSucceeded,
    TasksAdded,
    TaskSkipped,
    TaskVerified,
    VerdictRecorded,
)
from dagbok.events.run.values import Join, Spec
from dagbok.projections.task_graph.state import TaskStatus
from dagbok.testing import Scenario, candidate, decompose, failure, like, run_of, task, when


def _done(run: Scenario, id: str, outputs: Json = None) -> Scenario:
    return run.submits(id, candidate(id, outputs=outputs)).judges(id, "pass")


# Branches and joins.


def _diamond(**choice: Json) -> Scenario:
    """`pick` leads to `left` or `right`, both lead to `join`."""
    run = run_of(
        task("pick"),
        task("left", depends_on=("pick",), when=(when("pick", "/side", "left", "both"),)),
        task("right", depends_on=("pick",), when=(when("pick", "/side", "right", "both"),)),
        task("join", depends_on=("left", "right")),
    )
    return _done(run, "pick", choice)


def test_the_branch_that_is_not_taken_is_skipped_and_the_join_runs() -> None:
    picked = _diamond(side="left").then(
        VerdictRecorded,
        like(TaskVerified, task="pick", not_taken=("right",)),
        TaskSkipped("right"),
        like(AttemptOpened, task="left"),
    )
    joined = _done(picked.then_task("join", status="waiting", open_deps=1), "left")
    joined.then(VerdictRecorded, like(TaskVerified, not_taken=()), like(AttemptOpened, task="join"))
    _done(joined, "join").then(VerdictRecorded, TaskVerified, RunSucceeded())


def test_a_join_waits_for_every_branch_that_is_taken() -> None:
    both = _diamond(side="both").then_task("join", open_deps=2)
    _done(both, "left").then_task("join", status="waiting")
    _done(_done(both, "left"), "right").then_task("join", status="ready")


def test_a_join_that_no_branch_leads_to_is_skipped_and_a_run_of_skipped_roots_succeeds() -> None:
    _diamond(side="none").then(
        VerdictRecorded,
        like(TaskVerified, not_taken=("left", "right")),
        TaskSkipped("left"),
        TaskSkipped("right"),
        TaskSkipped("join"),
        RunSucceeded(),
    ).then_state(open_roots=0, status="succeeded")


def test_one_edge_that_is_taken_is_enough() -> None:
    """A task that is not to run without a decision depends on that decision alone, or asks for all of its edges."""
    build, ship = task("build"), ("build", "review")
    approve = when("review", "/ok", True)
    run = run_of(build, task("review"), task("ship", depends_on=ship, when=(approve,)))
    _done(_done(run, "build"), "review", {"ok": False}).then_task("ship", status="ready")
    alone = run_of(build, task("review", depends_on=("build",)), task("ship", depends_on=("review",), when=(approve,)))
    _done(_done(alone, "build"), "review", {"ok": False}).then_task("ship", status="skipped")


# A task that asks for all of its edges.


def _ship(*, join: Join = "all", also: tuple[str, ...] = ("build",)) -> Spec:
    approve = when("review", "/ok", True)
    return task("ship", depends_on=(*also, "review"), when=(approve,), join=join)


@pytest.mark.parametrize(("join", "ok", "status"), [
    ("any", True, "ready"), ("any", False, "ready"), ("all", True, "ready"), ("all", False, "skipped"),
])  # fmt: skip
@pytest.mark.parametrize("order", [("build", "review"), ("review", "build")])
def test_of_all_the_edges_none_may_be_left_out(
    join: Join, ok: bool, status: TaskStatus, order: tuple[str, str]
) -> None:
    run = run_of(task("build"), task("review"), _ship(join=join))
    for id in order:
        run = _done(run, id, {"ok": ok})
    run.then_task("ship", status=status)


def test_a_skipped_dependency_leaves_an_edge_out_too() -> None:
    picked = _done(run_of(
        task("pick"),
        task("left", depends_on=("pick",), when=(when("pick", "/side", "left"),)),
        task("both", depends_on=("pick", "left"), join="all"),
        task("either", depends_on=("pick", "left")),
    ), "pick", {"side": "right"})  # fmt: skip
    picked.then_task("both", status="skipped").then_task("either", status="ready")


def test_it_waits_until_all_of_its_edges_are_settled_also_when_one_is_left_out_already() -> None:
    run = _done(run_of(task("build"), task("review"), _ship()), "review", {"ok": False})
    _done(run.then_task("ship", status="waiting"), "build").then_task("ship", status="skipped")


def test_a_new_task_that_asks_for_all_counts_what_was_settled_before_it_came() -> None:
    reviewed = _done(run_of(task("parent"), task("build"), task("review")), "build")
    for ok, status in ((True, "ready"), (False, "skipped")):
        grown = _done(reviewed, "review", {"ok": ok}).submits("parent", decompose(_ship()))
        grown.then_task("ship", status=status)


def test_a_task_that_asks_for_all_and_is_decomposed_integrates_whatever_its_children_left() -> None:
    run = run_of(task("root", join="all")).submits("root", decompose(
        task("pick"), task("left", depends_on=("pick",), when=(when("pick", "/side", "left"),))
    ))  # fmt: skip
    picked = _done(run, "pick", {"side": "right"})
    picked.then_task("left", status="skipped").then_task("root", status="ready")


def test_a_task_without_edges_that_asks_for_all_of_them_runs() -> None:
    run_of(task("alone", join="all")).then_task("alone", status="ready")


# Order, roots, and what is skipped for good.


def test_the_order_in_which_edges_are_settled_does_not_matter() -> None:
    run = run_of(
        task("x"), task("y"), task("b", depends_on=("x", "y"), when=(when("x", "/go", 1), when("y", "/go", 1)))
    )
    for go in ({"x": 1, "y": 0}, {"x": 0, "y": 1}, {"x": 0, "y": 0}):
        ends = {
            _done(_done(run, first, {"go": go[first]}), second, {"go": go[second]}).task("b").status
            for first, second in (("x", "y"), ("y", "x"))
        }
        assert ends == {"ready" if 1 in go.values() else "skipped"}


def test_a_skipped_root_counts_as_settled_beside_others() -> None:
    run = run_of(task("a"), task("b", depends_on=("a",), when=(when("a", "/go", True),)), task("c"))
    skipped = _done(run, "a", {"go": False}).then_state(open_roots=1, status="running")
    _done(skipped, "c").then(VerdictRecorded, TaskVerified, RunSucceeded())


def test_a_skipped_root_beside_a_failed_one_fails_the_run() -> None:
    run = run_of(task("a"), task("b", depends_on=("a",), when=(when("a", "/go", True),)), task("c"))
    _done(run, "a", {"go": False}).fails("c", failure(terminal=True)).then_state(status="failed")


def test_what_is_skipped_runs_never_again() -> None:
    skipped = _diamond(side="left")
    skipped.starts("right").then_refused(Code.STALE_ATTEMPT)
    skipped.retries("right").then_refused(Code.VERSION_CONFLICT)
    skipped.cancels("right").then_refused(Code.VERSION_CONFLICT)
    skipped.supersedes("right", task("new")).then_refused(Code.VERSION_CONFLICT)
    skipped.when(CancelRun()).then_task("right", status="skipped")


def test_a_paused_run_skips_at_once_and_opens_later() -> None:
    reviewed = run_of(
        task("pick"),
        task("left", depends_on=("pick",), when=(when("pick", "/side", "left"),)),
        task("right", depends_on=("pick",), when=(when("pick", "/side", "right"),)),
    ).submits("pick", candidate(outputs={"side": "left"}))
    paused = reviewed.starts("pick").when(PauseRun()).then(RunPaused)
    paused.judges("pick", "pass").then(VerdictRecorded, TaskVerified, TaskSkipped("right")).when(ResumeRun()).then(
        RunResumed, like(AttemptOpened, task="left")
    )


def test_a_chain_of_ten_thousand_is_skipped_in_one_commit_without_recursion() -> None:
    chain = [task("t0", depends_on=("a",), when=(when("a", "/go", True),))]
    chain += [task(f"t{place}", depends_on=(f"t{place - 1}",)) for place in range(1, 10_000)]
    skipped = _done(run_of(task("a"), *chain), "a", {"go": False})
    assert [event.task for event in skipped.events if isinstance(event, TaskSkipped)] == [spec.id for spec in chain]
    assert isinstance(skipped.events[-1], RunSucceeded)
    skipped.then_state(counts={"waiting": 0, "ready": 0, "verifying": 0, "verified": 1, "skipped": 10_000})


def test_ten_thousand_branches_are_skipped_in_one_commit() -> None:
    gates = [task(f"t{place}", depends_on=("a",), when=(when("a", "/go", place),)) for place in range(10_000)]
    skipped = _done(run_of(task("a"), *gates, task("end", depends_on=tuple(spec.id for spec in gates))), "a", {"go": 7})
    assert sum(isinstance(event, TaskSkipped) for event in skipped.events) == 9_999
    skipped.then_task("t7", status="ready").then_task("end", status="waiting", open_deps=1)


# Conditions in a graph that grows.


def _grown(*tasks: Spec, outputs: Json, reuse: tuple[str, ...] = ()) -> Scenario:
    """`done` is verified with its outputs when `root` asks for tasks."""
    run = _done(run_of(task("root"), task("done")), "done", outputs)
    return run.submits("root", decompose(*tasks, reuse=reuse))


CHILD = task("child", depends_on=("done",), when=(when("done", "/go", True),))


def test_a_new_task_whose_condition_is_met_already_is_ready_at_once() -> None:
    _grown(CHILD, outputs={"go": True}).then(
        DecompositionAccepted, TasksAdded, like(AttemptOpened, task="child")
    ).then_task("root", open_deps=1)


def test_a_new_task_whose_condition_failed_already_is_skipped_at_once() -> None:
    """A parent whose children are all skipped integrates what they left: nothing."""
    grown = _grown(CHILD, task("after", depends_on=("child",)), outputs={"go": False}).then(
        DecompositionAccepted,
        TasksAdded,
        TaskSkipped("child"),
        TaskSkipped("after"),
        like(AttemptOpened, task="root", kind="work", phase="integrate"),
    )
    added = grown.events[1]
    assert isinstance(added, TasksAdded)
    assert [entry.not_taken for entry in added.tasks] == [("done",), ()]
    _done(grown, "root").then(VerdictRecorded, TaskVerified, RunSucceeded)


def test_a_parent_integrates_when_all_of_its_children_are_skipped_later() -> None:
    gate = task("gate")
    child = task("child", depends_on=("gate",), when=(when("gate", "/go", True),))
    run = run_of(task("root"), gate)
    waiting = run.submits("root", decompose(child)).then_task("root", status="waiting", open_deps=1)
    _done(waiting, "gate", {"go": False}).then(
        VerdictRecorded, TaskVerified, TaskSkipped("child"), like(AttemptOpened, task="root", phase="integrate")
    )


def test_a_new_task_waits_for_new_and_old_ones_alike() -> None:
    """Not taken from the one that is verified, taken from its sibling: it runs."""
    sibling = task("sibling")
    child = task("child", depends_on=("done", "sibling"), when=(when("done", "/go", True),))
    grown = _grown(sibling, child, outputs={"go": False}).then_task("child", status="waiting", open_deps=1)
    _done(grown, "sibling").then_task("child", status="ready")


def test_a_child_that_depends_on_a_skipped_task_alone_is_skipped() -> None:
    skipped = _done(
        run_of(task("pick"), task("root"), task("b", depends_on=("pick",), when=(when("pick", "", 1),))), "pick"
    )
    skipped.submits("root", decompose(task("child", depends_on=("b",)))).then(
        DecompositionAccepted, TasksAdded, TaskSkipped("child"), like(AttemptOpened, task="root", phase="integrate")
    )


def test_a_skipped_task_may_be_reused_and_gives_nothing() -> None:
    skipped = _done(
        run_of(task("pick"), task("root"), task("b", depends_on=("pick",), when=(when("pick", "", 1),))), "pick"
    )
    skipped.submits("root", decompose(reuse=("b",))).then(
        like(DecompositionAccepted, reused=("b",)), like(AttemptOpened, task="root", phase="integrate")
    ).then_task("root", deps=("b",), open_deps=0)


def test_what_was_skipped_is_part_of_the_next_input_as_an_empty_result() -> None:
    left, both = _done(_diamond(side="left"), "left"), _done(_done(_diamond(side="both"), "left"), "right")
    one, other = left.task("join").attempt, both.task("join").attempt
    assert one is not None
    assert other is not None
    assert one.input_hash != other.input_hash


def test_a_condition_holds_for_what_takes_the_place_of_its_task() -> None:
    run = run_of(task("pick"), task("b", depends_on=("pick",), when=(when("pick", "/go", True),)))
    other = run.supersedes("pick", task("pick-2"))
    other.then_task("b", conditions=(when("pick-2", "/go", True),), deps=("pick-2",))
    _done(other, "pick-2", {"go": True}).then_task("b", status="ready")
    _done(other, "pick-2", {"go": False}).then_task("b", status="skipped")


def test_a_replacement_whose_condition_failed_already_is_skipped() -> None:
    run = _done(run_of(task("pick"), task("b", depends_on=("pick",))), "pick", {"go": False})
    replacement = task("b-2", depends_on=("pick",), when=(when("pick", "/go", True),))
    skipped = run.supersedes("b", replacement)
    assert [type(event) for event in skipped.events[-2:]] == [TaskSkipped, RunSucceeded]
    skipped.then_task("b-2", status="skipped", root=True)
