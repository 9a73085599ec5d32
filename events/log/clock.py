"""The log's own clock: the only place of `dagbok.events` that asks what time it is."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Milliseconds since 1970. It may jump back; append times never do, each adapter sees to that."""


def system_ms() -> int:
    """The system's wall clock."""
    return time.time_ns() // 1_000_000
