"""Ctrl-C and SIGTERM: the first ends in good order, the second at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
THREAD_GRACE_S = 0.2
SAME_S = 0.3
"""A signal that comes so soon behind the first is the same one: `timeout` and others send it to a process and to its
group."""
_listening: list[Callable[[int, FrameType | None], None]] = []


class Interrupted(Exception):
    """A signal ended what was going on, after it had cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def status(self) -> int:
        """The exit status by custom: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number


class LeavableThreads(ThreadPoolExecutor):
    """A default executor that a loop does not wait for at its end: it would wait without end for a function that asks a
    store that does not answer. `leave_threads` is for afterwards."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Whatever `wait` says: what runs is left to itself, and what has not begun never does."""
        super().shutdown(wait=False, cancel_futures=True)


def leave_threads(status: int) -> None:
    """End the process now if functions in threads still run: they cannot be stopped, and the interpreter would wait
    for them."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(THREAD_GRACE_S)
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)


def _as_others_in_child() -> None:
    if _listening:
        # It would ignore what ends others.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_as_others_in_child)


def end_after(within_s: float, status: int) -> None:
    """End the process then, if it is still there. A thread does it: what does not end may be what blocks the loop."""

    def end() -> None:
        sys.stderr.write(f"not ended within {within_s:g} s: left as it is\n")
        sys.stderr.flush()
        os._exit(status)

    timer = threading.Timer(within_s, end)
    timer.daemon = True
    timer.start()


async def interruptible(work: Coroutine[object, object, T], within_s: float | None = None) -> T:
    """The result of `work`. A signal cancels it and raises `Interrupted` when it has ended; the next one ends the
    process without a further word, and so does the end of `within_s` seconds behind the first, with one line.

    Handlers of the interpreter do it, not of the loop: the next signal counts also where a function blocks the loop, or
    something that does not let itself be cancelled holds up its end."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    received: list[int] = []
    first_s = 0.0

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal first_s
        if received and time.monotonic() - first_s < SAME_S:
            return
        if received:
            os._exit(128 + number)
        received.append(number)
        first_s = time.monotonic()
        with suppress(RuntimeError):  # the loop is closed: all is done
            loop.call_soon_threadsafe(task.cancel)
        if within_s is not None:
            end_after(within_s, 128 + number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    _listening.append(stop)
    try:
        await asyncio.wait((task,))
    finally:
        if not received:
            _listening.remove(stop)
            for number in SIGNALS:
                signal.signal(number, before[number])
    if task.cancelled() and received:
        raise Interrupted(received[0])
    return task.result()
