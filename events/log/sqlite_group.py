"""What one transaction of the SQLite log writes: the appends that waited together, each at its place or refused.

The caller holds the write lock, so the ends that are read here are the ends until it commits.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from dagbok.events.errors import EndMoved, LogCorrupt
from dagbok.events.log.checks import TOPICS
from dagbok.events.log.port import Record, Topic

Row = tuple[str, bytes, str | None]
"""Key, value, headers as JSON."""

_INSERT: Final = {
    topic: f"INSERT INTO {topic} (id, ts, key, value, headers) VALUES (?, ?, ?, ?, ?)" for topic in TOPICS
}
_SEQUENCE: Final = "SELECT seq FROM sqlite_sequence WHERE name = ?"
_LAST_MS: Final = {
    topic: f"SELECT max(coalesce((SELECT ts FROM {topic} ORDER BY id DESC LIMIT 1), 0), "
    f"coalesce((SELECT value FROM meta WHERE name = 'last_ms.{topic}'), 0))"
    for topic in TOPICS
}


class Tail(NamedTuple):
    """Where a partition ends, and the append time of its last record."""

    end: int
    last_ms: int


@dataclass(eq=False, slots=True)
class Pending:
    """One append that waits for its transaction. `offset` or `refusal` is set by it; `done` tells the appender."""

    topic: Topic
    rows: Sequence[Row]
    size_bytes: int
    expect: int | None
    done: asyncio.Future[int]
    offset: int = -1
    refusal: EndMoved | None = None


def rows_of(records: Sequence[Record]) -> list[Row]:
    """The columns that do not depend on the place."""
    return [
        (record.key, record.value, msgspec.json.encode(record.headers).decode() if record.headers else None)
        for record in records
    ]


def insert(
    db: sqlite3.Connection, group: Sequence[Pending], now_ms: int, known: Mapping[Topic, Tail]
) -> dict[Topic, Tail]:
    """Insert the group and return the tails that it moves, which hold once the transaction is committed.

    Only the append whose `expect` is wrong is refused; those behind it are judged by the end without it. `known` are
    the tails after the last commit of this process: others may have appended since.
    """
    moved: dict[Topic, Tail] = {}
    for topic in TOPICS:
        appends = [pending for pending in group if pending.topic == topic]
        if not appends:
            continue
        end, last_ms = _tail(db, topic, known.get(topic))
        now_ms = max(now_ms, last_ms)
        rows = _rows(appends, end, now_ms)
        if rows:
            db.executemany(_INSERT[topic], rows)
            moved[topic] = Tail(end + len(rows), now_ms)
    return moved


def _rows(appends: Sequence[Pending], end: int, now_ms: int) -> list[tuple[int, int, str, bytes, str | None]]:
    rows: list[tuple[int, int, str, bytes, str | None]] = []
    for pending in appends:
        offset = end + len(rows)
        if pending.expect is not None and pending.expect != offset:
            pending.refusal = EndMoved(pending.topic, 0, pending.expect, offset)
            continue
        pending.offset = offset
        rows.extend([(place, now_ms, *row) for place, row in enumerate(pending.rows, offset + 1)])
    return rows


def _tail(db: sqlite3.Connection, topic: Topic, known: Tail | None) -> Tail:
    sequence: list[tuple[object]] = db.execute(_SEQUENCE, (topic,)).fetchall()
    end: object = sequence[0][0] if sequence else 0
    if known is not None and known.end == end:
        return known
    last_ms: object = db.execute(_LAST_MS[topic]).fetchall()[0][0]
    if not isinstance(end, int) or not isinstance(last_ms, int):
        raise LogCorrupt(f"{topic}[0] says that it ends at {end!r:.40}, and that its time is {last_ms!r:.40}")
    return Tail(end, last_ms)
