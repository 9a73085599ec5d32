"""Who waits for a partition of the SQLite log to grow.

Commits of this process wake them at once. SQLite tells nobody about another process's commit, so while somebody waits,
the ends are looked up 50 times a second (microseconds, no more than `PRAGMA data_version` takes).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dagbok.events.log.checks import log_closed
from dagbok.events.log.port import Topic

POLL_S: Final = 0.02


@dataclass(eq=False, slots=True)
class _Waiter:
    topic: Topic
    offset: int
    done: asyncio.Future[bool]


class Waiters:
    """`end_of(topic)` looks up where a partition ends now, whoever has moved it."""

    def __init__(self, end_of: Callable[[Topic], int]) -> None:
        self._end_of = end_of
        self._waiters: set[_Waiter] = set()
        self._poll: asyncio.TimerHandle | None = None

    async def wait(self, topic: Topic, offset: int, timeout_s: float | None) -> bool:
        """What `Log.wait` promises."""
        if self._end_of(topic) > offset:
            return True
        loop = asyncio.get_running_loop()
        waiter = _Waiter(topic, offset, loop.create_future())
        self._waiters.add(waiter)
        if self._poll is None:
            self._poll = loop.call_later(POLL_S, self._look)
        try:
            async with asyncio.timeout(timeout_s):
                return await waiter.done
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(waiter)

    def moved(self, topic: Topic, end: int) -> None:
        """The partition ends at `end` now."""
        for waiter in self._waiters:
            if waiter.topic == topic and waiter.offset < end and not waiter.done.done():
                waiter.done.set_result(True)

    def close(self) -> None:
        """Nobody waits any more: who did gets the error of a closed log."""
        if self._poll is not None:
            self._poll.cancel()
        self._fail(log_closed())

    def _look(self) -> None:
        self._poll = None
        try:
            for topic in {waiter.topic for waiter in self._waiters}:
                self.moved(topic, self._end_of(topic))
        except Exception as error:
            self._fail(error)
        if self._waiters:
            self._poll = asyncio.get_running_loop().call_later(POLL_S, self._look)

    def _fail(self, error: Exception) -> None:
        for waiter in self._waiters:
            if not waiter.done.done():
                waiter.done.set_exception(error)
