"""What a task that does not run waits for, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dagbok.cli.reading import Reading
from dagbok.cli.text import clean, clock, duration, short
from dagbok.events.log.clock import system_ms
from dagbok.projections.views.graph.rows import EdgeRow, RunRow, TaskRow

NAMED = 3
FIRST = ("failed", "blocked", "cancelled")
"""What keeps a task from ever going on is named before the rest."""


def waits_in(
    found: Reading, run: RunRow, task_of: Callable[[str], TaskRow | None], *, at_once: bool = False
) -> Callable[[TaskRow], str]:
    """`waits_for` of the tasks of a run. `task_of`: a task by its id; `at_once`: it will be asked of all of them."""
    goes_on = run.status == "running"
    whose = (found.tenant, found.project, run.run)
    if at_once:
        known: dict[str, list[EdgeRow]] = {}
        for edge in found.queries.edges(*whose):
            known.setdefault(edge.task, []).append(edge)
        return lambda task: waits_for(task, lambda id: known.get(id, []), task_of, goes_on=goes_on)
    return lambda task: waits_for(task, partial(found.queries.edges, *whose), task_of, goes_on=goes_on)


def waits_for(
    task: TaskRow,
    edges_of: Callable[[str], Sequence[EdgeRow]],
    task_of: Callable[[str], TaskRow | None],
    *,
    goes_on: bool,
) -> str:
    """`waits for draft (failed), b`; empty for a task that does not wait. `goes_on`: its run does; what keeps the
    others of its tasks is said of the run."""
    if task.status == "backoff":
        return again(task)
    if task.status == "ready" and task.open_kind is None:
        return "waits for its turn" if goes_on else ""
    if task.status != "waiting":
        return ""
    found = [(edge.dependency, task_of(edge.dependency)) for edge in edges_of(task.task) if edge.state == "open"]
    if len(found) > NAMED and all(row is not None and row.parent == task.task for _, row in found):
        return f"waits for {len(found)} tasks below it"
    return _named(found)


def again(task: TaskRow) -> str:
    """`again in 5.0 s (12:03:04.250)`: when the next attempt of a task opens after a backoff."""
    if task.due_ms is None:
        return ""
    left_ms = task.due_ms - system_ms()
    return f"again in {duration(left_ms)} ({clock(task.due_ms)})" if left_ms > 0 else "again now"


def _named(found: Sequence[tuple[str, TaskRow | None]]) -> str:
    if not found:
        return ""
    names = {id: f" ({row.status})" if row is not None and row.status in FIRST else "" for id, row in found}
    words = [f"{clean(short(id), 60)}{names[id]}" for id in sorted(names, key=lambda id: (not names[id], id))]
    rest = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return f"waits for {', '.join(words[:NAMED])}{rest}"
