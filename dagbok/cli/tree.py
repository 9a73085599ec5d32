"""A run as a tree of tasks, in lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from dagbok.cli.text import clean, counts, duration, plural, short
from dagbok.events.log.clock import system_ms
from dagbok.projections.queries import TaskTree
from dagbok.projections.task_graph.state import TaskStatus
from dagbok.projections.views.graph.rows import AttemptRow, RunRow, TaskRow

SHOWN_FIRST = 10
SHOWN_TROUBLED = 50
TROUBLED = ("failed", "blocked")
EXPLAINED = ("paused", "blocked", "failed", "cancelled")

Attempts = Callable[[str], Sequence[AttemptRow]]
"""The attempts of a task."""


def tree_lines(trees: Sequence[TaskTree], attempts: Attempts, *, whole: bool = False) -> Iterator[str]:
    """A line per task, below the task that made it. Of a long list the first tasks and those in trouble are shown, and
    the others counted, unless `whole`."""
    shown, rest = _chosen(trees, whole)
    for tree in shown:
        yield _line(tree.task, attempts)
        yield from _below(tree.children, attempts, "", whole)
    if rest:
        yield f"… {rest}"


def run_lines(run: RunRow, *, timed: bool = True) -> Iterator[str]:
    """What there is to say of the run itself; `timed`: with how long it took, since it began."""
    end = run.closed_ms if run.closed_ms is not None else system_ms()
    took = [duration(end - run.started_ms)] if timed else []
    yield "  ".join([f"run {run.run}", run.status, plural(run.tasks, "task"), *took])
    if run.status in EXPLAINED and (run.reason or run.code):
        yield f"  {run.status}: {clean(': '.join(part for part in (run.code, run.reason) if part), 300)}"


def run_counts(run: RunRow) -> Mapping[str, int]:
    """Tasks per status."""
    counted: dict[str, int] = {}
    counted.update(run.counts.items())
    return counted


def _below(trees: Sequence[TaskTree], attempts: Attempts, indent: str, whole: bool) -> Iterator[str]:
    shown, rest = _chosen(trees, whole)
    for index, tree in enumerate(shown):
        last = index == len(shown) - 1 and not rest
        yield f"{indent}{'└─ ' if last else '├─ '}{_line(tree.task, attempts)}"
        yield from _below(tree.children, attempts, indent + ("   " if last else "│  "), whole)
    if rest:
        yield f"{indent}└─ … {rest}"


def _chosen(trees: Sequence[TaskTree], whole: bool) -> tuple[list[TaskTree], str]:
    if whole or len(trees) <= SHOWN_FIRST + 1:
        return list(trees), ""
    troubled = [tree for tree in trees[SHOWN_FIRST:] if tree.task.status in TROUBLED][:SHOWN_TROUBLED]
    shown = [*trees[:SHOWN_FIRST], *troubled]
    names = {tree.task.task for tree in shown}
    rest = Counter(tree.task.status for tree in trees if tree.task.task not in names)
    return shown, _more(rest)


def _more(rest: Counter[TaskStatus]) -> str:
    if not rest:
        return ""
    if len(rest) == 1:
        ((status, count),) = rest.items()
        return f"{count} more {status}"
    return f"{rest.total()} more: {counts(rest.items())}"


def _line(task: TaskRow, attempts: Attempts) -> str:
    parts = [short(task.task), task.status]
    if task.attempts:
        parts.append(plural(task.attempts, "attempt"))
    took = _took_ms(task)
    if took is not None:
        parts.append(duration(took))
    parts.append(clean(task.goal, 60))
    line = "  ".join(parts)
    trouble = _trouble(task, attempts)
    return f"{line}  — {trouble}" if trouble else line


def _took_ms(task: TaskRow) -> int | None:
    begun = task.started_ms if task.started_ms is not None else task.opened_ms
    if begun is None:
        return None
    end = task.closed_ms if task.closed_ms is not None else system_ms()
    return max(0, end - begun)


def _trouble(task: TaskRow, attempts: Attempts) -> str:
    """Why it failed or is blocked, or whom it waits for."""
    if task.open_kind is not None and task.closed_ms is None:
        waiting = [row for row in attempts(task.task) if row.status == "open" and row.unserved]
        if waiting:
            kind = "worker" if waiting[-1].kind == "work" else "verifier"
            return f"no process serves the {kind} {clean(waiting[-1].handler)}"
    if task.status in ("failed", "blocked", "backoff"):
        return clean(": ".join(part for part in (task.code, task.reason) if part), 200)
    return ""
