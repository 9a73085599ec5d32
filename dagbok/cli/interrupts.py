"""Ctrl-C and SIGTERM: the first ends in good order, the second at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """A signal ended what was going on, after it had cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def status(self) -> int:
        """The exit status by custom: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number


async def interruptible(work: Coroutine[object, object, T]) -> T:
    """The result of `work`. A signal cancels it and raises `Interrupted` when it has ended; the next one ends the
    process without a further word."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    received: list[int] = []

    def stop(number: int) -> None:
        if received:
            sys.stderr.flush()
            os._exit(128 + number)
        received.append(number)
        task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        await asyncio.wait((task,))
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
    if task.cancelled() and received:
        raise Interrupted(received[0])
    return task.result()
