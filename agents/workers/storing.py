"""Storing what an attempt hands over. A full disk is no failure of its task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from dagbok.agents.patience import Patience
from dagbok.agents.queue.port import AttemptKey
from dagbok.agents.workers.holdings import Holdings
from dagbok.events.errors import StorageFailed

T = TypeVar("T")

STORE_PAUSE_S = 0.5


async def stored(holdings: Holdings, key: AttemptKey, write: Callable[[], T], *, is_large: bool) -> T:
    """What `write` gives, tried again while the store fails. When that takes too long, the attempt and the process are
    given up: raises `StorageFailed`."""
    patience = Patience()
    while True:
        try:
            # Storing waits for the disk, and 10,000 tasks take tens of milliseconds: not on the event loop.
            return await asyncio.to_thread(write) if is_large else write()
        except StorageFailed as error:
            try:
                patience.bear(error)
            except StorageFailed as failure:
                holdings.give_up(key, failure)
                raise
        await asyncio.sleep(STORE_PAUSE_S)
