"""A run as a tree of tasks, in lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from dagbok.cli.budget import budget_line, elapsed_ms
from dagbok.cli.text import clean, counts, duration, faint, plural, short
from dagbok.cli.unserved import AT_WORK
from dagbok.events.log.clock import system_ms
from dagbok.projections.queries import TaskTree
from dagbok.projections.task_graph.state import TaskStatus
from dagbok.projections.views.graph.rows import AttemptRow, EdgeRow, RunRow, TaskRow

SHOWN_FIRST = 10
SHOWN_TROUBLED = 50
TROUBLED = ("failed", "blocked")
EXPLAINED = ("paused", "blocked", "failed", "cancelled")
FAINT = ("skipped", "superseded")

Attempts = Callable[[str], Sequence[AttemptRow]]
"""The attempts of a task."""
Waits = Callable[[TaskRow], str]
"""What a task waits for, in words."""


class Seen:
    """What stands beside the tasks in their lines: their attempts, the edges of the run that have a condition, what a
    task waits for, and the pools that nobody serves."""

    def __init__(
        self,
        attempts: Attempts,
        conditional: Sequence[EdgeRow] = (),
        waits: Waits = lambda _: "",
        unserved: Collection[str] = (),
    ) -> None:
        self.attempts, self.waits, self.unserved = attempts, waits, unserved
        self.conditions: Mapping[str, Sequence[EdgeRow]] = _by_task(conditional)


def tree_lines(trees: Sequence[TaskTree], seen: Seen, *, whole: bool = False) -> Iterator[str]:
    """A line per task, below the task that made it. Of a long list the first tasks and those in trouble are shown, and
    the others counted, unless `whole`."""
    shown, rest = _chosen(trees, whole)
    for tree in shown:
        yield _line(tree.task, seen)
        yield from _below(tree.children, seen, "", whole)
    if rest:
        yield f"… {rest}"


def run_lines(run: RunRow, *, timed: bool = True) -> Iterator[str]:
    """What there is to say of the run itself; `timed`: with how long it took, since it began."""
    took = [duration(elapsed_ms(run))] if timed else []
    yield "  ".join([f"run {run.run}", run.status, plural(run.tasks, "task"), *took])
    if run.status in EXPLAINED and (run.reason or run.code):
        yield f"  {run.status}: {clean(': '.join(part for part in (run.code, run.reason) if part), 300)}"
    if budget := budget_line(run):
        yield f"  {budget}"


def run_counts(run: RunRow) -> Mapping[str, int]:
    """Tasks per status."""
    counted: dict[str, int] = {}
    counted.update(run.counts.items())
    return counted


def _below(trees: Sequence[TaskTree], seen: Seen, indent: str, whole: bool) -> Iterator[str]:
    shown, rest = _chosen(trees, whole)
    for index, tree in enumerate(shown):
        last = index == len(shown) - 1 and not rest
        yield f"{indent}{'└─ ' if last else '├─ '}{_line(tree.task, seen)}"
        yield from _below(tree.children, seen, indent + ("   " if last else "│  "), whole)
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


def _line(task: TaskRow, seen: Seen) -> str:
    status = f"{task.status} → {short(task.superseded_by)}" if task.superseded_by else task.status
    parts = [short(task.task), status]
    if task.attempts:
        parts.append(plural(task.attempts, "attempt"))
    took = _took_ms(task)
    if took is not None:
        parts.append(duration(took))
    if used := _used(task):
        parts.append(used)
    parts.append(clean(task.goal, 60))
    parts += [_when(edge) for edge in seen.conditions.get(task.task, ())]
    line = "  ".join(parts)
    trouble = _trouble(task, seen)
    if trouble:
        line = f"{line}  — {trouble}"
    return faint(line) if task.status in FAINT else line


def _when(edge: EdgeRow) -> str:
    """`when review.decision = approve`."""
    condition = edge.condition or ""
    space = "" if condition.startswith(".") else " "
    line = clean(f"when {short(edge.dependency)}{space}{condition}", 120)
    return f"{line} (not so)" if edge.state == "not_taken" else line


def _used(task: TaskRow) -> str:
    tokens = f"{task.tokens_used:,} tokens" if task.tokens_used else ""
    cost = f"cost {task.cost_used}" if task.cost_used != "0" else ""
    return ", ".join(part for part in (tokens, cost) if part)


def _by_task(edges: Sequence[EdgeRow]) -> Mapping[str, Sequence[EdgeRow]]:
    found: dict[str, list[EdgeRow]] = {}
    for edge in edges:
        found.setdefault(edge.task, []).append(edge)
    return found


def _took_ms(task: TaskRow) -> int | None:
    """An attempt that is open still has not begun; a pure one has no start of its own."""
    begun = task.started_ms
    if begun is None and task.closed_ms is not None:
        begun = task.opened_ms
    if begun is None:
        return None
    end = task.closed_ms if task.closed_ms is not None else system_ms()
    return max(0, end - begun)


def _trouble(task: TaskRow, seen: Seen) -> str:
    """Why it failed, is blocked or was cancelled, or what it waits for."""
    if task.open_kind is not None and task.closed_ms is None:
        waiting = [row for row in seen.attempts(task.task) if row.status == "open" and row.unserved]
        if waiting:
            kind = "worker" if waiting[-1].kind == "work" else "verifier"
            return f"no process serves the {kind} {clean(waiting[-1].handler)}"
    parts = [seen.waits(task)]
    if task.pool in seen.unserved and task.status in AT_WORK:
        parts.append(f"nobody serves its pool {clean(task.pool)}")
    if task.status in ("failed", "blocked", "backoff", "cancelled"):
        parts.append(clean(": ".join(part for part in (task.code, task.reason) if part), 200))
    return "; ".join(part for part in parts if part)
