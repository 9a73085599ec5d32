"""Removing the oldest records of the SQLite log, a bounded number in each transaction, so that appends come between."""

from __future__ import annotations

import sqlite3
from typing import Final

from dagbok.events.log.checks import TOPICS
from dagbok.events.log.port import Topic

CHUNK_RECORDS: Final = 500

_FIRST: Final = {topic: f"SELECT min(id) FROM {topic}" for topic in TOPICS}
_KEEP_TIME: Final = {
    topic: f"INSERT OR REPLACE INTO meta SELECT 'last_ms.{topic}', ts FROM {topic} ORDER BY id DESC LIMIT 1"
    for topic in TOPICS
}
_DELETE: Final = {topic: f"DELETE FROM {topic} WHERE id <= ?" for topic in TOPICS}


def delete_some(db: sqlite3.Connection, topic: Topic, before: int) -> int:
    """Remove the oldest records with offsets below `before`, at most `CHUNK_RECORDS`; return how many may be left.

    The last append time is kept beside: it may not run backwards, even when no record is left to tell it.
    """
    first: int | None = db.execute(_FIRST[topic]).fetchall()[0][0]
    if first is None or first > before:
        return 0
    last = min(before, first + CHUNK_RECORDS - 1)
    db.execute(_KEEP_TIME[topic])
    db.execute(_DELETE[topic], (last,))
    return before - last
