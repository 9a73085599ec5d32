"""What random histories found out: each as the shortest history that shows it."""

from __future__ import annotations

from dagbok.events.run.events import AttemptClosed, RunFailed, TaskCancelled
from dagbok.testing import Scenario, decompose, like, run_of, task


def _statuses(run: Scenario) -> dict[str, str]:
    return {id: node.status for id, node in run.state.tasks.items()}


def test_what_outlived_the_task_that_created_it_ends_with_the_branch_that_it_is_in() -> None:
    """A child was kept when its parent was superseded, because a sibling waited for it. The branch is cancelled,
    sibling and all: nobody waits for the child any more."""
    run = (
        run_of(task("top"))
        .submits("top", decompose(task("old"), task("sibling")))
        .submits("old", decompose(task("child")))
        .submits("sibling", decompose(reuse=("child",)))
        .supersedes("old", task("new"))
        .then_task("child", status="ready")
    )
    run = run.cancels("top").then(
        like(AttemptClosed, task="child", cause="task_cancelled"),
        like(AttemptClosed, task="new", cause="task_cancelled"),
        TaskCancelled("top", "requested"),
        *(TaskCancelled(id, "parent_cancelled") for id in ("sibling", "child", "new")),
        like(RunFailed, code="task_cancelled"),
    )
    assert _statuses(run) == dict.fromkeys(("top", "sibling", "child", "new"), "cancelled") | {"old": "superseded"}
