"""Threads for the sync functions of one key: as many as may run at once, and none that anybody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import structlog

logger = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Job:
    function: Callable[[], object]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[object]
    running: bool = False
    abandoned: bool = False


class DaemonThreads:
    """Up to `size` daemon threads. A call whose awaiting is cancelled is abandoned: if it has not begun it never does;
    if it runs, no power can stop its thread, so that thread goes on until the function returns, its result is dropped,
    and another thread may take its place at once. So a function that never returns costs a thread for each time that it
    is abandoned, but neither the work behind it nor the end of the program waits for it."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = name, size
        self._turn = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._idle = self._count = self._started = 0
        self._closed = False

    async def run(self, function: Callable[[], object]) -> object:
        """What the function returns or raises. Raises `RuntimeError` when no thread can be started."""
        loop = asyncio.get_running_loop()
        job = _Job(function, loop, loop.create_future())
        self._submit(job)
        try:
            return await job.answer
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def close(self) -> None:
        """Begin nothing more. Does not wait for what runs."""
        with self._turn:
            self._closed = True
            self._waiting.clear()
            self._turn.notify_all()

    def _submit(self, job: _Job) -> None:
        with self._turn:
            if self._closed:
                raise RuntimeError("the threads are closed")
            if len(self._waiting) >= self._idle and self._count < self._size:
                self._start()
            self._waiting.append(job)
            self._turn.notify()

    def _start(self) -> None:
        self._started += 1
        threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        self._count += 1

    def _abandon(self, job: _Job) -> None:
        with self._turn:
            if not job.running:
                if job in self._waiting:
                    self._waiting.remove(job)
                return
            job.abandoned = True
            self._count -= 1
            if len(self._waiting) > self._idle and not self._closed:
                self._start()
        logger.info("function.abandoned", thread=self._name, why="it goes on until it returns; nobody waits for it")

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            result: object = None
            error: BaseException | None = None
            try:
                result = job.function()
            except BaseException as raised:
                error = raised
            with self._turn:
                job.running = False
            if job.abandoned:
                return
            _tell(job, result, error)
            del job, result, error

    def _next(self) -> _Job | None:
        with self._turn:
            self._idle += 1
            while not self._waiting and not self._closed:
                self._turn.wait()
            self._idle -= 1
            if self._closed:
                self._count -= 1
                return None
            job = self._waiting.popleft()
            job.running = True
            return job


def _tell(job: _Job, result: object, error: BaseException | None) -> None:
    def tell() -> None:
        if job.answer.done():
            return
        if error is None:
            job.answer.set_result(result)
        else:
            job.answer.set_exception(error)

    try:
        job.loop.call_soon_threadsafe(tell)
    except RuntimeError:
        # The loop is closed: nobody is left to hear it.
        return
