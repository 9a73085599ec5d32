"""The model's word on branches: what ends with a task that is cancelled or superseded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.property.run_model import FINAL, Model
from tests.property.run_model_task import Task


def below(run: Model, top: Task) -> set[str]:
    """Open tasks that `top` brought into the graph, or that those did, or that one of them waits for, or waited for
    before it was replaced, and whoever brought it is gone."""
    statuses = run.statuses()
    found, before = {top.spec.id}, 0
    while len(found) > before:
        before = len(found)
        waited_for = {old for id in found for dep in run.tasks[id].deps for old in _with_replaced(run, dep)}
        for id, task in run.tasks.items():
            left = id in waited_for and task.parent is not None and statuses[task.parent] in ("cancelled", "superseded")
            if task.parent in found or left:
                found.add(id)
    return {id for id in found if id != top.spec.id and statuses[id] not in FINAL}


def doomed(run: Model, top: Task, needed: Sequence[str] = ()) -> set[str]:
    """Those below `top` that nothing else waits for: neither the rest of the run, nor what is `needed`."""
    found, statuses = below(run, top), run.statuses()
    while True:
        others = [task for id, task in run.tasks.items() if statuses[id] not in FINAL and id not in found]
        wanted = {dep for task in others if task is not top for dep in task.deps}.union(needed)
        kept = {id for id in found if id in wanted or run.tasks[id].root}
        if not kept:
            return found
        found -= kept


def _with_replaced(run: Model, id: str | None) -> Iterator[str]:
    while id is not None:
        yield id
        id = run.tasks[id].took
