"""Calls the user's functions: async ones on the event loop, sync ones in a thread pool of their own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from dagbok.agents.workers.definitions import Verifier, Worker


class Calls:
    """One thread pool per key, as large as its concurrency, so that workers and verifiers never starve each other."""

    def __init__(self) -> None:
        self._pools: dict[tuple[type, str], ThreadPoolExecutor] = {}

    async def call(self, definition: Worker | Verifier, *arguments: object) -> object:
        """What the function returns."""
        function: Callable[..., object] = definition.function
        if not definition.is_async:
            context = contextvars.copy_context()
            loop = asyncio.get_running_loop()
            returned = await loop.run_in_executor(self._pool(definition), context.run, _called, function, *arguments)
        else:
            returned = function(*arguments)
        return await returned if inspect.isawaitable(returned) else returned

    def close(self) -> None:
        """Do not wait for threads that still run: they cannot be stopped."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self, definition: Worker | Verifier) -> ThreadPoolExecutor:
        key = (type(definition), definition.key)
        pool = self._pools.get(key)
        if pool is None:
            name = f"dagbok-{type(definition).__name__.lower()}-{definition.key}"
            pool = self._pools[key] = ThreadPoolExecutor(definition.concurrency, name)
        return pool


def _called(function: Callable[..., object], *arguments: object) -> object:
    try:
        return function(*arguments)
    except StopIteration as error:
        # A future cannot carry it: whoever waits for the thread would wait for ever.
        raise RuntimeError("the function raised StopIteration") from error
