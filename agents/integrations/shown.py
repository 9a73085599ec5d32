"""Rows as JSON that a language model reads: times as text, long values cut, and never more than fits."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from dagbok.projections.views.graph.rows import RunRow, TaskRow
from dagbok.projections.views.journal import JournalRow

JsonObject = dict[str, object]
"""A JSON object."""

MAX_TEXT_CHARS: Final = 300
MAX_ITEMS: Final = 6
MAX_NESTING: Final = 4
MAX_PAGE_CHARS: Final = 12_000
"""Of a page of rows, as JSON: about 4,000 tokens."""


def shown_run(row: RunRow) -> JsonObject:
    """A run in short."""
    return {
        "run": row.run,
        "status": row.status,
        "started": moment(row.started_ms),
        "ended": None if row.closed_ms is None else moment(row.closed_ms),
        "problem": problem(row.code, row.reason),
        "tasks": {status: count for status, count in row.counts.items() if count},
        "last_event": row.last_seq,
    }


def shown_task(row: TaskRow) -> JsonObject:
    """A task in short."""
    return {
        "number": row.number,
        "task": row.task,
        "parent": row.parent,
        "goal": cut(row.goal),
        "worker": row.worker,
        "status": row.status,
        "attempts": row.attempts,
        "problem": problem(row.code, row.reason),
    }


def shown_event(row: JournalRow) -> JsonObject:
    """An event; long values of its data are cut."""
    return {
        "seq": row.seq,
        "type": row.type,
        "at": moment(row.now_ms),
        "by": row.actor,
        "data": shortened(msgspec.json.decode(row.data)),
    }


def page(name: str, items: Iterable[JsonObject], cursor: str, *, more: bool) -> JsonObject:
    """`{name: […], "next_after": …}` with as many items as fit, one at least. `next_after` is the `cursor` of the last
    of them, or none when nothing follows (`more`: something follows the items)."""
    kept: list[JsonObject] = []
    left = MAX_PAGE_CHARS
    for item in items:
        left -= len(msgspec.json.encode(item))
        if left < 0 and kept:
            more = True
            break
        kept.append(item)
    return {name: kept, "next_after": kept[-1][cursor] if kept and more else None}


def shortened(value: object, nesting: int = MAX_NESTING) -> object:
    """The value with texts cut, and of long lists and deep objects the beginning."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, list):
        if nesting == 0:
            return f"… {len(value)} items"
        kept = [shortened(item, nesting - 1) for item in value[:MAX_ITEMS]]
        return [*kept, f"… {len(value) - MAX_ITEMS} more"] if len(value) > MAX_ITEMS else kept
    if isinstance(value, dict):
        if nesting == 0:
            return f"… {len(value)} fields"
        fields = {cut(str(name)): shortened(item, nesting - 1) for name, item in list(value.items())[: 4 * MAX_ITEMS]}
        return fields if len(fields) == len(value) else {**fields, "…": f"{len(value) - len(fields)} more"}
    return value


def cut(text: str) -> str:
    """The text, or its beginning."""
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 1]}…"


def problem(code: str | None, reason: str | None) -> str | None:
    """`code: reason`, cut."""
    return cut(": ".join(part for part in (code, reason) if part)) or None


def moment(at_ms: int) -> str:
    """`2026-01-31T12:00:00.000Z`."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
