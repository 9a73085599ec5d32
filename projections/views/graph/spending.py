"""What attempts reserve and use, added up in the rows of their task and run."""

from __future__ import annotations

from dagbok.events.run.amounts import NOTHING, minus, plus
from dagbok.events.run.values import Usage
from dagbok.projections.tables.rows import GREATEST
from dagbok.projections.views.graph.memory import RunMemory
from dagbok.projections.views.graph.rows import RunRow, TaskRow


def exact(cost: str) -> str:
    """A cost in its one form."""
    return plus(NOTHING, Usage(cost=cost)).cost


def capped(number: int) -> int:
    """A sum of bytes as a column can hold it: workers say what they like, and the tables go on. Those of tokens end in
    `amounts.py`."""
    return min(number, GREATEST)


def spend(run: RunMemory, row: TaskRow, usage: Usage) -> None:
    """An attempt at the task used this, or was charged it."""
    for of in (run.bound(), row):
        used = plus(Usage(of.tokens_used, of.cost_used), usage)
        of.tokens_used, of.cost_used = used.tokens, used.cost
    run.spending[row.task] = row


def reserve(run: RunMemory, row: TaskRow, wanted: Usage) -> None:
    """The attempt that opens may use this. A task has one at a time."""
    total = run.bound()
    _set_reserved(total, plus(_reserved(total), wanted))
    _set_reserved(row, plus(NOTHING, wanted))
    run.spending[row.task] = row


def release(run: RunMemory, row: TaskRow) -> None:
    """The attempt of the task is over: what it had reserved is free again."""
    if not row.tokens_reserved and row.cost_reserved == "0":
        return
    total = run.bound()
    _set_reserved(total, minus(_reserved(total), _reserved(row)))
    _set_reserved(row, NOTHING)
    run.spending[row.task] = row


def _reserved(row: RunRow | TaskRow) -> Usage:
    return Usage(row.tokens_reserved, row.cost_reserved)


def _set_reserved(row: RunRow | TaskRow, usage: Usage) -> None:
    row.tokens_reserved, row.cost_reserved = usage.tokens, usage.cost
