"""Waiting in a host: for what is wanted, or for the host's own end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final, TypeVar

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

T = TypeVar("T")

USE_INSIDE: Final = "use it inside its `async with` block, from the event loop that opened it"


async def first_of(wanted: Coroutine[object, object, T], failure: asyncio.Future[BaseException]) -> T:
    """The result of `wanted`, unless `failure` comes first: then that. Raises `InvalidInput` (`usage`) in another event
    loop than that of `failure`."""
    if asyncio.get_running_loop() is not failure.get_loop():
        wanted.close()
        raise InvalidInput("this Dagbok lives in another event loop", code=Code.USAGE, advice=USE_INSIDE)
    if failure.done():
        wanted.close()
        raise failure.result()
    task = asyncio.ensure_future(wanted)
    try:
        await asyncio.wait((task, failure), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise failure.result()
        return task.result()
    finally:
        task.cancel()


def closed() -> InvalidInput:
    """What whoever still waits, or asks later, is told."""
    return InvalidInput("this Dagbok is closed", code=Code.USAGE, advice=USE_INSIDE)
