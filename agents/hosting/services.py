"""Tasks that run as long as their host does: when one of them fails, so does the host."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import structlog

logger = structlog.get_logger(__name__)


class Services:
    """A set of tasks with one fate. `failure` has the error of the first that failed.

    They wait under `asyncio.timeout`: before Python 3.12 `asyncio.wait_for` swallows a cancellation that comes in the
    moment in which the wait is over, and a service that goes on then is never ended.
    """

    def __init__(self, failure: asyncio.Future[BaseException]) -> None:
        self.failure = failure
        self._tasks: list[asyncio.Task[None]] = []

    def serve(self, service: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run it until `end`."""
        task = asyncio.create_task(service)
        self._tasks.append(task)
        self.watch(task)
        return task

    def watch(self, task: asyncio.Task[None]) -> None:
        """Its failure is one of all; somebody else ends it."""
        task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Cancel all of them and wait. Idempotent."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self.failure.done():
            return
        error = task.exception()
        if error is not None:
            logger.error("host.failed", error=str(error), exc_info=error)
            self.failure.set_result(error)
