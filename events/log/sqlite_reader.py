"""Reading the SQLite log. Every call is one statement, so it sees one snapshot and holds none when it returns.

That matters: a snapshot that stays open keeps the write-ahead log from being reset, and the file grows without end.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from dagbok.events.errors import LogCorrupt, LogLost
from dagbok.events.log.checks import TOPICS
from dagbok.events.log.port import NO_HEADERS, Bounds, StoredRecord, Topic
from dagbok.events.log.sqlite_place import FilePlace
from dagbok.events.log.sqlite_schema import FAILURES, connect, explain

READ_BYTES: Final = 8 * 1024 * 1024
"""A read ends with the record that takes its values to this size, so that `limit` alone does not decide on memory."""

_READ: Final = {
    topic: f"SELECT id - 1, ts, key, value, headers FROM {topic} WHERE id > ? ORDER BY id LIMIT ?" for topic in TOPICS
}
_BOUNDS: Final = {
    topic: f"SELECT (SELECT min(id) - 1 FROM {topic}), "
    f"coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{topic}'), 0)"
    for topic in TOPICS
}
_VALUE: Final = {topic: f"SELECT value FROM {topic} WHERE id = ?" for topic in TOPICS}
GREATEST_OFFSET: Final = 2**63 - 2
"""SQLite counts no further; a record beyond it is not there."""
_HEADER_TYPES: Final = (str, type(None))
_decode_headers: Final = msgspec.json.Decoder(dict[str, str]).decode


class Reader:
    """One connection that only reads. May be used from any thread; raises dagbok's errors."""

    def __init__(self, path: Path, busy_timeout_s: float, place: FilePlace | None = None) -> None:
        """`place`: of a log that stays open; it tells why a read fails that has worked before."""
        self._path = path
        self._is_open = None if place is None else place.is_open
        self._lock = threading.Lock()
        self._db = connect(path, busy_timeout_s)

    def records(self, topic: Topic, start: int, limit: int) -> Sequence[StoredRecord]:
        """What `Log.read` promises, up to `READ_BYTES`."""
        found: list[StoredRecord] = []
        size_bytes = 0
        least = start
        place = (max(-1, min(start, GREATEST_OFFSET)), min(limit, GREATEST_OFFSET))
        with self._database() as db, closing(db.execute(_READ[topic], place)) as rows:
            for offset, ms, key, value, headers in rows:
                whole = type(ms) is int and type(key) is str and type(value) is bytes
                if offset < least or not whole or type(headers) not in _HEADER_TYPES:
                    raise LogCorrupt(f"{self._path}: {topic}[0] at offset {offset} is not a record")
                least = offset + 1
                loose = _decode_headers(headers) if headers else NO_HEADERS
                found.append(StoredRecord(offset, ms, key, value, loose))
                size_bytes += len(value)
                if size_bytes >= READ_BYTES:
                    break
        return found

    def bounds(self, topic: Topic) -> Bounds:
        """What `Log.bounds` promises."""
        with self._database() as db:
            ((start, end),) = db.execute(_BOUNDS[topic]).fetchall()
        if not isinstance(end, int):
            raise LogCorrupt(f"{self._path}: {topic}[0] has no end")
        return Bounds(end if start is None else start, end)

    def value(self, topic: Topic, offset: int) -> bytes:
        """What `Log.value_at` promises."""
        rows: list[tuple[object]] = []
        if 0 <= offset <= GREATEST_OFFSET:
            with self._database() as db:
                rows = db.execute(_VALUE[topic], (offset + 1,)).fetchall()
        if not rows:
            raise LogLost(f"{topic}[0] has no record at offset {offset}")
        value = rows[0][0]
        if not isinstance(value, bytes):
            raise LogCorrupt(f"{self._path}: {topic}[0] at offset {offset} is not a record")
        return value

    def close(self) -> None:
        """Idempotent; waits for a call that runs in another thread."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                yield self._db
        except FAILURES as error:
            raise explain(error, self._path, self._is_open) from error
        except msgspec.DecodeError as error:
            raise LogCorrupt(f"{self._path}: damaged headers: {error}") from error
