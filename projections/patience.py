"""Waiting out what passes: a database that is restarted, a disk that is full for a while, a network that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, TypeVar

from dagbok.events.errors import DagbokError

T = TypeVar("T")

FIRST_DELAY_S: Final = 0.5
LONGEST_DELAY_S: Final = 15.0


async def patiently(
    work: Callable[[], Awaitable[T]],
    waits: Callable[[DagbokError, float], None],
    *,
    first_delay_s: float = FIRST_DELAY_S,
    longest_delay_s: float = LONGEST_DELAY_S,
) -> T:
    """Do `work`, again and again while it fails with an error that may pass (`retry`), with a doubling delay of at most
    `longest_delay_s`; after it ran for longer than it had waited before, it begins with the first one again.

    `waits` is told the error and the seconds until the next try: nobody waits without a word. Any other error is
    raised. For work that may be repeated, as `Projector.run` and `Tables.connect`.
    """
    waited_s, delay_s = 0.0, first_delay_s
    while True:
        began_s = monotonic()
        try:
            return await work()
        except DagbokError as error:
            if not error.retry:
                raise
            if monotonic() - began_s > waited_s:
                delay_s = first_delay_s
            waits(error, delay_s)
        await asyncio.sleep(delay_s)
        waited_s, delay_s = delay_s, min(delay_s * 2, longest_delay_s)
