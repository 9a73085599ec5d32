"""The model's word on branches: what ends with a task that is cancelled or superseded."""

from __future__ import annotations

from collections.abc import Sequence

from tests.property.run_model import FINAL, Model, Task


def below(run: Model, top: Task) -> set[str]:
    """Open tasks that `top` brought into the graph, or that those did."""
    statuses = run.statuses()
    found = {top.spec.id}
    for id, task in run.tasks.items():
        if task.parent in found:
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
