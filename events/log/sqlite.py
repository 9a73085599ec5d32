"""The embedded log: one SQLite file, one partition, several processes, every acknowledged record on the disk.

What makes it durable and fast stands in `sqlite_writer.py`; the file in `sqlite_schema.py`; why this way, in
`docs/design/architecture.md` 3.8. SQLite's own lock orders the appends of several processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from dagbok.events.log.checks import check_limit, check_place, check_records, log_closed
from dagbok.events.log.clock import Clock, system_ms
from dagbok.events.log.port import Bounds, Record, StoredRecord, Topic
from dagbok.events.log.sqlite_delete import delete_some
from dagbok.events.log.sqlite_place import FilePlace
from dagbok.events.log.sqlite_reader import Reader
from dagbok.events.log.sqlite_schema import BUSY_TIMEOUT_S, FAILURES, explain, prepare
from dagbok.events.log.sqlite_waiters import Waiters
from dagbok.events.log.sqlite_writer import Writer

PARTITIONS: Final = 1


class SqliteLog:
    """A log in one file. It refuses an append whose `expect` is not the end.

    Besides what the port says, every call may raise `StorageFailed` (the disk is full or broken), `LogCorrupt` (the
    file is damaged) and `FolderBusy` (another process kept a lock too long). The log can be used again after each.
    Appends and waits raise `LogLost` once the file was removed, moved or exchanged: what is confirmed is in the file at
    its path.
    """

    def __init__(self, path: Path, clock: Clock, busy_timeout_s: float) -> None:
        """See `open`."""
        # A connection that nobody closes would, whenever it is collected, take the write-ahead log of a file that has
        # come in the place of this one with it.
        with ExitStack() as opened:
            self._place = FilePlace(path)
            self._reader = Reader(path, busy_timeout_s, self._place)
            opened.callback(self._reader.close)
            # Of its own: another thread's read does not hold up the loop.
            self._values = Reader(path, busy_timeout_s, self._place)
            opened.callback(self._values.close)
            self._waiters = Waiters(self._end)
            self._writer = Writer(path, self._place, clock, self._waiters.moved, busy_timeout_s)
            opened.pop_all()
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, path: Path, *, clock: Clock = system_ms, busy_timeout_s: float = BUSY_TIMEOUT_S) -> SqliteLog:
        """Open the log in the file `path`; create it if there is none (its folder must be there). Blocks, milliseconds.

        `clock` gives the append times. A call waits `busy_timeout_s` for the lock of another process before it gives
        up with `FolderBusy`. Several processes, and several instances in one, may have a file open.
        Raises `FormatTooNew`, `LogCorrupt`, `StorageFailed` or `FolderBusy`; the file then stays as it was.
        """
        path = path.absolute()
        prepare(path, busy_timeout_s)
        try:
            return cls(path, clock, busy_timeout_s)
        except FAILURES as error:
            raise explain(error, path) from error

    @property
    def partitions(self) -> int:
        return PARTITIONS

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        self._check(topic, partition)
        check_records(records)
        return await self._writer.append(topic, records, expect)

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        self._check(topic, partition)
        check_limit(limit)
        return self._reader.records(topic, start, limit)

    async def bounds(self, topic: Topic, partition: int) -> Bounds:
        self._check(topic, partition)
        return self._reader.bounds(topic)

    async def wait(self, topic: Topic, partition: int, offset: int, timeout_s: float | None = None) -> bool:
        self._check(topic, partition)
        return await self._waiters.wait(topic, offset, timeout_s)

    async def delete_before(self, topic: Topic, partition: int, offset: int) -> None:
        self._check(topic, partition)
        while await self._writer.run(partial(delete_some, topic=topic, before=offset)):
            pass

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        self._check(topic, partition)
        return self._values.value(topic, offset)

    def read_now(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        self._check(topic, partition)
        check_limit(limit)
        return self._values.records(topic, start, limit)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    def _end(self, topic: Topic) -> int:
        self._place.check()
        return self._reader.bounds(topic).end

    async def _close(self) -> None:
        self._waiters.close()
        self._reader.close()
        self._values.close()
        await self._writer.close()

    def _check(self, topic: Topic, partition: int) -> None:
        if self._closing is not None:
            raise log_closed()
        check_place(topic, partition, PARTITIONS)
