"""A thread with an event loop of its own, for callers that block: whatever loop they may be in is not asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class LoopThread:
    """The thread starts with the first question, and ends with `close` or the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def result(self, work: Coroutine[object, object, T]) -> T:
        """What `work` gives or raises, done in the thread. Blocks; from any thread but that one."""
        return asyncio.run_coroutine_threadsafe(work, self._started()).result()

    async def close(self, last: Coroutine[object, object, None]) -> None:
        """Do `last` in the thread, if there is one, and end it."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            last.close()
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(last, loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
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
