"""The one writer of a process: group commit.

Appends queue up. A *round* takes what waits: BEGIN IMMEDIATE and the inserts on the event loop's thread (to hand rows
to another thread costs more than to insert them), COMMIT in the writer's own thread, because it waits for the disk.
What arrives meanwhile waits for the next round. With one appender a commit holds one append, with many it holds many.

Rounds are callbacks of the loop, not a task: nobody can cancel them in the middle of a transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from dagbok.events.forks import Origin
from dagbok.events.log.clock import Clock
from dagbok.events.log.port import Record, Topic
from dagbok.events.log.sqlite_group import Pending, Tail, insert, rows_of
from dagbok.events.log.sqlite_place import FilePlace
from dagbok.events.log.sqlite_schema import FAILURES, connect, explain, is_busy, while_busy

GROUP_RECORDS: Final = 2048
GROUP_BYTES: Final = 8 * 1024 * 1024
"""A round ends with the append that takes it to one of these: the inserts hold up the loop for milliseconds only."""

Job = Callable[[sqlite3.Connection], int]


@dataclass(eq=False, slots=True)
class _Exclusive:
    job: Job
    done: asyncio.Future[int]
    result: int = 0


class Writer:
    """Owns the connection that writes. All methods belong to one event loop and raise dagbok's errors.

    `committed(topic, end)` is called for every partition that a round has moved. Nothing is confirmed that is not in
    the file at `place`.
    """

    def __init__(
        self,
        path: Path,
        place: FilePlace,
        clock: Clock,
        committed: Callable[[Topic, int], None],
        busy_timeout_s: float,
    ) -> None:
        self._origin = Origin()
        self._path = path
        self._clock = clock
        self._busy_timeout_s = busy_timeout_s
        self._committed = committed
        self._db = connect(path, 0)
        self._place = place
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dagbok-log")
        self._queue: deque[Pending] = deque()
        self._jobs: deque[_Exclusive] = deque()
        self._tails: dict[Topic, Tail] = {}
        self._busy = False
        self._idle: asyncio.Future[None] | None = None

    async def append(self, topic: Topic, records: Sequence[Record], expect: int | None) -> int:
        """What `Log.append` promises. An append that is cancelled before its round begins is not written."""
        loop = asyncio.get_running_loop()
        size_bytes = sum([len(record.value) for record in records])
        pending = Pending(topic, rows_of(records), size_bytes, expect, loop.create_future())
        self._queue.append(pending)
        self._wake(loop)
        return await pending.done

    async def run(self, job: Job) -> int:
        """Run `job` between two rounds, in the writer's thread and in a transaction of its own; return its result."""
        loop = asyncio.get_running_loop()
        work = _Exclusive(job, loop.create_future())
        self._jobs.append(work)
        self._wake(loop)
        return await work.done

    async def close(self) -> None:
        """Write what was queued, then close the connection and end the thread."""
        loop = asyncio.get_running_loop()
        if self._busy:
            self._idle = loop.create_future()
            await self._idle
        await loop.run_in_executor(self._thread, self._db.close)  # the last connection writes the log into the file
        self._thread.shutdown(wait=False)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._busy:
            self._busy = True
            loop.call_soon(self._next)

    def _next(self) -> None:
        self._origin.stay()
        if self._jobs:
            work = self._jobs.popleft()
            self._in_thread(partial(self._transact, work), partial(self._finish, work))
        elif self._queue:
            self._begin()
        else:
            self._busy = False
            if self._idle is not None:
                self._idle.set_result(None)

    def _begin(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except FAILURES as error:
            if is_busy(error):
                self._in_thread(self._begin_patiently, partial(self._begun, len(self._queue)))
            else:
                self._begun(len(self._queue), error)
        else:
            self._write()

    def _begun(self, waiting: int, error: BaseException | None) -> None:
        """`waiting` appends have waited for the lock all the time."""
        if error is None:
            self._write()
        else:
            self._fail([self._queue.popleft() for _ in range(waiting)], error)

    def _write(self) -> None:
        group = self._take()
        try:
            moved = insert(self._db, group, self._clock(), self._tails)
        except BaseException as error:
            self._roll_back()
            self._fail(group, error)
            if not isinstance(error, Exception):
                raise
            return
        if moved:
            self._in_thread(self._commit, partial(self._settle, group, moved))
        else:
            self._roll_back()
            self._settle(group, moved, None)

    def _take(self) -> list[Pending]:
        group: list[Pending] = []
        records = size_bytes = 0
        while self._queue and records < GROUP_RECORDS and size_bytes < GROUP_BYTES:
            pending = self._queue.popleft()
            if not pending.done.done():  # else it was cancelled
                group.append(pending)
                records += len(pending.rows)
                size_bytes += pending.size_bytes
        return group

    def _settle(self, group: Sequence[Pending], moved: dict[Topic, Tail], error: BaseException | None) -> None:
        if error is not None:
            self._fail(group, error)
            return
        self._tails |= moved
        for pending in group:
            if pending.done.done():
                continue
            if pending.refusal is None:
                pending.done.set_result(pending.offset)
            else:
                pending.done.set_exception(pending.refusal)
        for topic, tail in moved.items():
            self._committed(topic, tail.end)
        self._go_on()

    def _fail(self, group: Sequence[Pending], error: BaseException) -> None:
        for pending in group:
            if not pending.done.done():
                pending.done.set_exception(self._explained(error))
        self._go_on()

    def _finish(self, work: _Exclusive, error: BaseException | None) -> None:
        if not work.done.done():
            if error is None:
                work.done.set_result(work.result)
            else:
                work.done.set_exception(self._explained(error))
        self._go_on()

    def _go_on(self) -> None:
        """The next round, one turn of the loop later: those who have just been answered may append again before it."""
        asyncio.get_running_loop().call_soon(self._next)

    def _explained(self, error: BaseException) -> BaseException:
        return explain(error, self._path, self._place.is_open) if isinstance(error, FAILURES) else error

    # In the writer's thread, while the loop leaves the connection alone:

    def _in_thread(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        loop = asyncio.get_running_loop()

        def run() -> None:
            outcome: BaseException | None = None
            try:
                work()
            except BaseException as error:
                outcome = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(then, outcome)

        self._thread.submit(run)

    def _begin_patiently(self) -> None:
        while_busy(lambda: self._db.execute("BEGIN IMMEDIATE"), self._busy_timeout_s)

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        self._place.check()

    def _transact(self, work: _Exclusive) -> None:
        self._begin_patiently()
        try:
            work.result = work.job(self._db)
        except BaseException:
            self._roll_back()
            raise
        self._commit()

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # SQLite rolls back by itself after some errors
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
