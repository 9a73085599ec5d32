"""The model's word on what events say of edges: those to a verified task that are not taken."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.events.run import events as e
from tests.property.run_model import Model
from tests.property.run_model_task import Task


def check_added(run: Model, events: Sequence[e.Event]) -> None:
    """Of new tasks, the edges to verified ones that are not taken."""
    for entry in (entry for event in events if isinstance(event, e.TasksAdded) for entry in event.tasks):
        task = run.tasks[entry.spec.id]
        assert entry.created_by == task.parent
        verified = [dep for dep in task.deps if run.tasks[dep].told == "verified"]
        assert set(entry.not_taken) == {dep for dep in verified if run.edge(task, dep, "verified") != "taken"}


def check_verified(run: Model, task: Task, event: e.TaskVerified) -> None:
    """Of a task that is verified now, the edges to it that are not taken."""
    id = task.spec.id
    waiting = {other.spec.id for other in run.tasks.values() if id in other.deps}
    untaken = {other for other in waiting if run.edge(run.tasks[other], id, "verified") != "taken"}
    assert set(event.not_taken) == untaken
