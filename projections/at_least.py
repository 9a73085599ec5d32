"""Reading one's own writes: an answer to a command names its commit, and tables are read when they have taken it in."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from dagbok.projections.queries import Queries

FIRST_LOOK_S: Final = 0.01
SLOWEST_LOOK_S: Final = 0.2


async def reached(queries: Queries, at: tuple[int, int], timeout_s: float) -> bool:
    """Wait until every query sees the commit at `at` (partition and offset in `events`, as an `Answer` names it). False
    when the tables are still behind it after `timeout_s`. Raises like `Queries.position`.

    Nothing tells a reader that rows have come, so it looks again and again, at most five times a second.
    """
    partition, offset = at
    deadline_s = time.monotonic() + timeout_s
    delay_s = FIRST_LOOK_S
    while (await asyncio.to_thread(queries.position, partition)).next_offset <= offset:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        await asyncio.sleep(min(delay_s, left_s))
        delay_s = min(delay_s * 2, SLOWEST_LOOK_S)
    return True
