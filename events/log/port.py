"""The log port: ordered, durable records in partitions of topics. Everything else is derived from it.

An adapter promises:

- a partition is a sequence of records with growing offsets. Offsets need not be dense, are never reused, and a reader
  never sees a record appear before one that it has read;
- `append` writes all records of a call or none, next to each other, and returns only when they are durable;
- the append time is the log's own clock (milliseconds) and never runs backwards within a partition;
- what a reader has seen stays, unless `delete_before` removes it.

Adapters: `memory.py` (the shortest, a tutorial for the next), `sqlite.py` (embedded), Kafka (`docs/design/kafka.md`).
All pass one contract suite, `tests/contract/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

import msgspec

Topic = Literal["commands", "events"]
COMMANDS: Final = "commands"
EVENTS: Final = "events"

NO_HEADERS: Final[Mapping[str, str]] = {}


class Record(msgspec.Struct, frozen=True, gc=False):
    """What is appended: `key` (the stream), `value` (bytes, hashed by whoever needs it), loose headers (decide
    nothing)."""

    key: str
    value: bytes
    headers: Mapping[str, str] = NO_HEADERS


class StoredRecord(msgspec.Struct, frozen=True, gc=False):
    """What is read: a record, its offset, and the log's own time of the append in milliseconds since 1970."""

    offset: int
    append_ms: int
    key: str
    value: bytes
    headers: Mapping[str, str] = NO_HEADERS


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """`start` ≤ offset < `end` for every record that is there. `end` is where the next record would land at the
    earliest."""

    start: int
    end: int


class Log(Protocol):
    """Port of the log. All methods may be called concurrently from one event loop; `value_at` and `read_now` from any
    thread."""

    @property
    def partitions(self) -> int:
        """Number of partitions of each topic; fixed for the life of the log."""
        ...

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        """Append all `records` durably and return the offset of the first; the others follow without a hole.

        With `expect`, an adapter that can refuse does so (`EndMoved`, nothing written) when the end of the partition is
        another one. One that cannot (Kafka) reports where the records landed: the caller compares.
        Any other exception is doubt: the records may or may not be there; read before going on.
        """
        ...

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        """Up to `limit` records with offset ≥ `start`, ascending. Empty exactly when `start` is at or beyond the
        end."""
        ...

    async def bounds(self, topic: Topic, partition: int) -> Bounds:
        """Where the partition starts and ends now."""
        ...

    async def wait(self, topic: Topic, partition: int, offset: int, timeout_s: float | None = None) -> bool:
        """Return True as soon as the end is beyond `offset` (also by other processes), False after `timeout_s`."""
        ...

    async def delete_before(self, topic: Topic, partition: int, offset: int) -> None:
        """Remove the records below `offset`. The offsets that remain do not change."""
        ...

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        """The value of one record, at once (blocking). Raises `LogLost` when it is not there."""
        ...

    def read_now(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        """What `read` gives, at once (blocking)."""
        ...

    async def close(self) -> None:
        """Finish what was begun and release everything. Idempotent."""
        ...
