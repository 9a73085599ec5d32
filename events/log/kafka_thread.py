"""A thread with an event loop of its own, for callers that block: whatever loop they may be in is not asked."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import TypeVar, cast

T = TypeVar("T")


class LoopThread:
    """The thread starts with the first question, and ends with `close` or the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._asked: set[asyncio.Future[object]] = set()
        self._ended = False

    def result(self, work: Coroutine[object, object, T]) -> T:
        """What `work` gives or raises, done in the thread. Blocks; from any thread but that one. Raises
        `concurrent.futures.CancelledError` when the thread is closed meanwhile."""
        with self._starting:
            if self._ended:
                work.close()
                raise concurrent.futures.CancelledError
            asked = asyncio.run_coroutine_threadsafe(self._ask(work), self._started())
        return asked.result()

    async def close(self, last: Coroutine[object, object, None] | None = None) -> None:
        """End what is being done for others, do `last` in the thread, if there is one, and end it."""
        with self._starting:
            self._ended, loop, thread = True, self._loop, self._thread
        if loop is None or thread is None:
            if last is not None:
                last.close()
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._end(last), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)

    async def _ask(self, work: Coroutine[object, object, T]) -> T:
        task = asyncio.ensure_future(work)
        asked = cast("asyncio.Future[object]", task)
        self._asked.add(asked)
        try:
            return await task
        finally:
            self._asked.discard(asked)

    async def _end(self, last: Coroutine[object, object, None] | None) -> None:
        asked = tuple(self._asked)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        if last is not None:
            await last

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=[self._loop], name=self._name, daemon=True)
            self._thread.start()
        return self._loop

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()
