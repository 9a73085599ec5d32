"""A consumer that stands somewhere in one partition, with the records that it has brought and nobody has taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from dagbok.events.log.kafka_client import Consumer, Fetched, Place, close_consumer
from dagbok.events.log.kafka_sizes import FETCH_BYTES
from dagbok.events.log.port import StoredRecord

FILL: Final = 512
"""Records that are taken from a fetch at once: what is not asked for stays undecoded."""


class Cursor:
    """Reads on from `position`. It is used by one reader at a time.

    It fetches ahead while the partition has more, if `ahead`. Where a fetch would have to wait for records, it stands
    still unless somebody waits with it: a seek could not begin before the broker has answered that fetch.
    """

    def __init__(self, consumer: Consumer, place: Place, position: int, *, ahead: bool) -> None:
        """`consumer` is paused."""
        self._consumer, self._place, self._ahead = consumer, place, ahead
        self._buffer: deque[StoredRecord] = deque()
        self.position = position
        """The offset of the record that is handed out next."""
        self._fetched_to = position
        self._size_bytes = 0
        self._last_ms = 0
        consumer.seek(place, position)

    @property
    def end(self) -> int:
        """The partition ends here or later, as far as this cursor has seen; 0 when it has seen nothing yet."""
        return self._consumer.highwater(self._place) or 0

    @property
    def filled(self) -> bool:
        """Records lie ready."""
        return bool(self._buffer)

    def seek(self, offset: int) -> None:
        """Go on from `offset`, keeping what lies ready if it is there."""
        while self._buffer and (offset < self.position or self._buffer[0].offset < offset):
            self._pop()
        if not self._buffer and offset != self._fetched_to:
            self._consumer.seek(self._place, offset)
            self._fetched_to = offset
        self.position = offset

    def lacks(self, limit: int, end: int) -> bool:
        """Fewer than `limit` records lie ready, there are more below `end`, and what lies ready is not large."""
        return len(self._buffer) < limit and self._fetched_to < end and self._size_bytes < FETCH_BYTES

    async def fill(self, limit: int, timeout_s: float) -> None:
        """Bring up to `limit` records more, perhaps a few beyond. Waits `timeout_s` for the first one. May be
        cancelled. Raises `OutOfRange` when the position is not in the partition."""
        self._consumer.resume(self._place)
        try:
            await self._fetch(max(FILL, min(limit, 8 * FILL)), timeout_s)
        except UnicodeDecodeError:
            await self._fetch_unreadable(timeout_s)
        finally:
            if not self._ahead or self._at_end():
                self._consumer.pause(self._place)

    def take(self, limit: int) -> Sequence[StoredRecord]:
        """Hand out up to `limit` of what lies ready."""
        taken = [self._pop() for _ in range(min(limit, len(self._buffer)))]
        if taken:
            self.position = taken[-1].offset + 1
        return taken

    async def close(self) -> None:
        await close_consumer(self._consumer)

    async def _fetch(self, count: int, timeout_s: float) -> bool:
        fetched = await self._consumer.getmany(self._place, timeout_ms=int(timeout_s * 1000), max_records=count)
        found = fetched.get(self._place, ())
        for record in found:
            self._keep(stored(record))
        return bool(found)

    async def _fetch_unreadable(self, timeout_s: float) -> None:
        """aiokafka stops at a record that names a header in bytes that are no text, also on the way to what stands
        behind it in the same batch. What stands before it is read one by one, and it becomes an empty record: nobody
        can say more about it, and later batches are not held up."""
        self._consumer.seek(self._place, self._fetched_to)
        try:
            while await self._fetch(1, timeout_s):
                pass
        except UnicodeDecodeError:
            self._keep(StoredRecord(self._fetched_to, self._last_ms, "", b""))
            self._consumer.seek(self._place, self._fetched_to)

    def _keep(self, record: StoredRecord) -> None:
        self._buffer.append(record)
        self._fetched_to = record.offset + 1
        self._last_ms = record.append_ms
        self._size_bytes += len(record.value)

    def _pop(self) -> StoredRecord:
        record = self._buffer.popleft()
        self._size_bytes -= len(record.value)
        return record

    def _at_end(self) -> bool:
        return self._fetched_to >= self.end


def stored(fetched: Fetched) -> StoredRecord:
    """The record in our words. Whatever somebody else has put there can be read: what is no text is replaced."""
    headers = {name: (value or b"").decode(errors="replace") for name, value in fetched.headers}
    key = (fetched.key or b"").decode(errors="replace")
    return StoredRecord(fetched.offset, fetched.timestamp, key, fetched.value or b"", headers)
