"""Writes that go on when nobody waits for them any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


async def beside(work: Coroutine[object, object, None], ended: Callable[[], None] | None = None) -> None:
    """Wait for work that goes on beside when its caller is cancelled; `ended` is called when it is over, however.

    Raises what the work raises. A caller who is gone asks for no error, and that is none of the loop."""

    def over(task: asyncio.Future[None]) -> None:
        if ended is not None:
            ended()
        if not task.cancelled():
            task.exception()

    task = asyncio.ensure_future(work)
    task.add_done_callback(over)
    await asyncio.shield(task)
