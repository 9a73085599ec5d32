"""How long an event loop was busy with one thing at a time."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Final

TICK_S: Final = 0.01


class LoopWatch:
    """Within a `with` block of a coroutine. `longest_s`: how late the loop came to a timer at most, which is what its
    leases, pings and answers had to wait."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> LoopWatch:
        self._set()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set(self) -> None:
        self._due_s = time.perf_counter() + TICK_S
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self.longest_s = max(self.longest_s, time.perf_counter() - self._due_s)
        self._set()
