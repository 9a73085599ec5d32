"""Calls the user's functions: async ones on the event loop, sync ones in threads of their own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from dagbok.agents.workers.definitions import Verifier, Worker
from dagbok.agents.workers.threads import DaemonThreads
from dagbok.events.forks import Origin, no_child_in


class Calls:
    """Threads for each key, as many as its concurrency, so that workers and verifiers never starve each other.

    A sync function whose attempt was stopped (timeout, cancellation, lost lease, end of the process) cannot be stopped
    itself: it is abandoned, and goes on in its daemon thread until it returns. Its place goes to the next call at once,
    and the program may end before it does; see `DaemonThreads`.

    A function may fork. The child that comes back from it, by an answer, an exception or an await, ends: see
    `dagbok.events.forks`."""

    def __init__(self) -> None:
        self._origin = Origin()
        with suppress(RuntimeError):  # no loop runs yet
            no_child_in(asyncio.get_running_loop())
        self._by_key: dict[tuple[type, str], DaemonThreads] = {}

    async def call(self, definition: Worker | Verifier, *arguments: object) -> object:
        """What the function returns."""
        function: Callable[..., object] = definition.function
        if not definition.is_async:
            context = contextvars.copy_context()
            called = partial(context.run, _called, self._origin, function, *arguments)
            returned = await self._threads(definition).run(called)
            return await returned if inspect.isawaitable(returned) else returned
        try:
            returned = function(*arguments)
            return await returned if inspect.isawaitable(returned) else returned
        finally:
            self._origin.stay()

    def close(self) -> None:
        """Begin nothing more. Does not wait for threads that still run: they cannot be stopped."""
        for threads in self._by_key.values():
            threads.close()
        self._by_key.clear()

    def _threads(self, definition: Worker | Verifier) -> DaemonThreads:
        key = (type(definition), definition.key)
        threads = self._by_key.get(key)
        if threads is None:
            name = f"dagbok-{type(definition).__name__.lower()}-{definition.key}"
            threads = self._by_key[key] = DaemonThreads(name, definition.concurrency)
        return threads


def _called(origin: Origin, function: Callable[..., object], *arguments: object) -> object:
    try:
        return function(*arguments)
    except StopIteration as error:
        # A future cannot carry it: whoever waits for the thread would wait for ever.
        raise RuntimeError("the function raised StopIteration") from error
    finally:
        origin.stay()
