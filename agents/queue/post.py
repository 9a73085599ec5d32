"""When the file of the queue is written and read: at once when something goes out, and when another process has
written. SQLite tells nobody about that, so this looks: 250 times a second while there is traffic, 50 times when there
is none, 10 times when nobody else takes part. A look takes microseconds and never waits; everything else is done in
a thread of its own, one exchange at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol

import structlog

from dagbok.agents.queue.letters import Inbound, Member, Outbound
from dagbok.agents.queue.sqlite_exchange import Exchange
from dagbok.agents.queue.sqlite_file import QueueFile
from dagbok.events.log.sqlite_schema import is_busy

logger = structlog.get_logger(__name__)

BUSY_S: Final = 0.004
IDLE_S: Final = 0.02
ALONE_S: Final = 0.1
BUSY_FOR_S: Final = 1.0
BEAT_S: Final = 1.0
RETRY_S: Final = 1.0
LOCKED_S: Final = 5.0
"""Somebody holds the lock for so long: stopped within a transaction, or not one of us. A new file is free of it."""

MAX_REPLIES: Final = 10_000
"""So many replies wait at most for a file that cannot be written."""


class Desk(Protocol):
    """Whose post it is."""

    def member(self) -> Member:
        """What this process says of itself."""
        ...

    def received(self, found: Inbound, out: Outbound, now_s: float) -> None:
        """`out` is written, `found` was read."""
        ...

    def returned(self, out: Outbound) -> None:
        """`out` could not be written."""
        ...

    def has_company(self) -> bool:
        """Whether another process takes part."""
        ...


class Post:
    """`out` collects what goes out next; call `soon` after adding to it. All of it belongs to one event loop."""

    def __init__(self, file: QueueFile, exchange: Exchange, desk: Desk, now_s: Callable[[], float]) -> None:
        self._file, self._exchange, self._desk, self._now_s = file, exchange, desk, now_s
        self.out = Outbound()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dagbok-queue")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._round: asyncio.Future[Inbound] | None = None
        self._joins: list[asyncio.Future[None]] = []
        self._beat_due_s = self._busy_until_s = self._unusable_until_s = self._looked_s = 0.0
        self._locked_since_s: float | None = None
        self._anew: str | None = None
        self.joined = False

    @property
    def usable(self) -> bool:
        """Whether the last exchange went well, or long enough ago to try again."""
        return self._now_s() >= self._unusable_until_s

    @property
    def may_be_heard(self) -> bool:
        """Whether there is a file that another process may read."""
        return self._loop is not None and (self._file.is_open or self._file.has_changed())

    def start(self) -> None:
        """Begin to look."""
        self._loop = asyncio.get_running_loop()
        self._begin(self._now_s())

    async def join(self) -> None:
        """Take part: say so to the others from now on; returns when it is said, or could not be said yet."""
        if self._loop is None:
            raise RuntimeError("the queue is not started")
        self.joined, self._beat_due_s = True, 0.0
        done: asyncio.Future[None] = self._loop.create_future()
        self._joins.append(done)
        self.soon()
        await done

    async def close(self) -> None:
        """Say that this process leaves, and look no more."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._round is not None:
            await asyncio.wait((self._round,))
        last = Outbound(replies=self.out.replies, leaves=self.joined)
        try:
            await loop.run_in_executor(self._thread, partial(self._end, last))
        finally:
            self._thread.shutdown(wait=False)

    def say(self, delay_s: float = 0.0) -> None:
        """What this process says of itself has changed."""
        if self.joined:
            self._beat_due_s = min(self._beat_due_s, self._now_s() + delay_s)
            self.soon(delay_s)

    def stir(self) -> None:
        """There is traffic: look more often for a while."""
        self._busy_until_s = self._now_s() + BUSY_FOR_S

    def soon(self, delay_s: float = 0.0) -> None:
        """Have an exchange, at the latest after this delay if there is anything to exchange."""
        if self._loop is None or self._round is not None:
            return
        when_s = self._loop.time() + max(delay_s, self._unusable_until_s - self._now_s())
        if self._timer is not None:
            if self._timer.when() <= when_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when_s, self._look)

    def _look(self) -> None:
        self._timer = None
        now_s = self._now_s()
        if self.out.writes or self._is_due(now_s) or self._file.has_changed():
            self._begin(now_s)
        else:
            self._wait(now_s)

    def _is_due(self, now_s: float) -> bool:
        """A sign of life, or a look at those of the others."""
        if self.joined and now_s >= self._beat_due_s:
            return True
        return self._desk.has_company() and now_s >= self._looked_s + BEAT_S

    def _wait(self, now_s: float) -> None:
        if now_s < self._busy_until_s:
            self.soon(BUSY_S)
        else:
            self.soon(IDLE_S if self.joined or self._desk.has_company() else ALONE_S)

    def _begin(self, now_s: float) -> None:
        if self._loop is None:
            return
        out, self.out = self.out, Outbound()
        self._looked_s = now_s
        if self.joined and (now_s >= self._beat_due_s or self._anew):
            out.member = self._desk.member()
            self._beat_due_s = now_s + BEAT_S
        anew, self._anew = self._anew, None
        self._round = self._loop.run_in_executor(self._thread, partial(self._exchange.run, out, anew))
        self._round.add_done_callback(partial(self._done, out))

    def _done(self, out: Outbound, done: asyncio.Future[Inbound]) -> None:
        self._round = None
        error = None if done.cancelled() else done.exception()
        if self._loop is None or done.cancelled():
            return  # nobody wants to know the error, but asyncio complains of one that nobody has looked at
        now_s = self._now_s()
        try:
            if error is None:
                self._went_well(done.result(), out, now_s)
            else:
                self._failed(error, out, now_s)
        finally:
            if out.member is not None:
                self._answer_joins()
            if self.out.writes or (self.joined and now_s >= self._beat_due_s):
                self.soon()
            else:
                self._wait(now_s)

    def _went_well(self, found: Inbound, out: Outbound, now_s: float) -> None:
        self._locked_since_s = None
        if found.anew and self.joined and out.member is None:
            self._beat_due_s = 0.0
        if out.letters or out.replies or found.work or found.replies:
            self.stir()
        self._desk.received(found, out, now_s)

    def _failed(self, error: BaseException, out: Outbound, now_s: float) -> None:
        """Nothing that goes through the queue is needed: say it, keep what is worth it, and try again later."""
        logger.warning("queue.unusable", error=str(error), letters=len(out.letters), replies=len(out.replies))
        self._unusable_until_s = now_s + RETRY_S
        self._beat_due_s = 0.0
        if not is_busy(error):
            self._locked_since_s = None
        elif self._locked_since_s is None:
            self._locked_since_s = now_s
        elif now_s - self._locked_since_s >= LOCKED_S:
            self._anew, self._locked_since_s = "somebody keeps it locked", None
        self.out.replies = [*out.replies, *self.out.replies][-MAX_REPLIES:]
        self._desk.returned(out)

    def _answer_joins(self) -> None:
        joins, self._joins = self._joins, []
        for join in joins:
            if not join.done():
                join.set_result(None)

    def _end(self, last: Outbound) -> None:
        """In the thread."""
        try:
            if last.writes:
                self._exchange.run(last, None)
        except Exception as error:
            # Whoever is left notices that this process gives no sign of life.
            logger.info("queue.left_silently", error=str(error))
        finally:
            self._file.close()
