"""The calls that a log is in the middle of: closing it ends them, and a failure is told in the words of dagbok."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dagbok.events.log.checks import log_closed
from dagbok.events.log.kafka_errors import FAILURES, explain


class Calls:
    """Calls of one event loop."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()
        self._none = asyncio.Event()
        self._none.set()
        self._ended = False

    @asynccontextmanager
    async def one(self, where: str) -> AsyncIterator[None]:
        """One call at `where`, such as `events[3]`. Raises the error of a closed log as soon as `end` is called, and
        what `kafka_errors.explain` makes of a failure."""
        try:
            async with asyncio.timeout(None) as running:
                self._running.add(running)
                self._none.clear()
                try:
                    yield
                finally:
                    self._running.discard(running)
                    if not self._running:
                        self._none.set()
        except FAILURES as error:
            raise log_closed() if self._ended else explain(error, where) from error

    async def end(self) -> None:
        """Nobody calls any more: end the calls that run, and wait until they have."""
        self._ended = True
        for running in self._running:
            running.reschedule(asyncio.get_running_loop().time())
        await self._none.wait()
