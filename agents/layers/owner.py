"""The task in which the layers of one run are entered and left.

Leaving must not be cut short when the caller is cancelled again, and a resource must be closed by the task that opened
it (cancel scopes and task groups demand that). So one task of its own does both, and the caller waits for it. It has a
copy of the caller's context variables; what hooks set there, the body does not see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from dagbok.agents.layers.failing import other_errors
from dagbok.agents.layers.scopes import Scopes

GRACE_S = 1.0
"""How long a step that was cut may take to end, before it is cut again (in seconds)."""


class Owner:
    """Enters and leaves the layers of one run."""

    def __init__(self, scopes: Scopes, cleanup_timeout_s: float) -> None:
        """Take the layers; `cleanup_timeout_s` is how long leaving may go on once the caller was cancelled."""
        self._scopes, self._timeout_s = scopes, cleanup_timeout_s
        loop = asyncio.get_running_loop()
        self._entered: asyncio.Future[None] = loop.create_future()
        self._leaving: asyncio.Future[BaseException | None] = loop.create_future()
        self._task = loop.create_task(self._live(), name="dagbok.layers")

    async def enter(self) -> list[BaseException]:
        """Wait until all layers are entered.

        Returns:
            Nothing where they are; else why not, after the ones that were entered have been left. When the caller is
            cancelled meanwhile, its CancelledError is the first.
        """
        try:
            either: set[asyncio.Future[Any]] = {self._task, self._entered}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as cancelled:
            self._leaving.set_result(cancelled)
            if not self._entered.done():
                self._task.cancel()
            return [cancelled, *_without_cuts(await self._end(cancelled))]
        return [] if self._entered.done() else self._errors() or [asyncio.CancelledError()]

    async def leave(self, error: BaseException | None) -> list[BaseException]:
        """Leave all layers and wait for that, also when the caller is cancelled meanwhile.

        Returns:
            The errors of leaving, and the CancelledError of a cancellation meanwhile.
        """
        if not self._leaving.done():
            self._leaving.set_result(error)
        return await self._end(error)

    async def _live(self) -> list[BaseException]:
        try:
            await self._scopes.enter()
        except BaseException as failed:
            return [failed]
        self._entered.set_result(None)
        try:
            error = await self._leaving
        except asyncio.CancelledError as lost:  # a scope of a layer failed, or the loop closes
            error = lost
        return await self._scopes.leave(error)

    async def _end(self, error: BaseException | None) -> list[BaseException]:
        loop = asyncio.get_running_loop()
        cancelled = error if isinstance(error, asyncio.CancelledError) else None
        due = None if cancelled is None else loop.time() + self._timeout_s
        cuts = self._cuts()
        while not self._task.done():
            try:
                await asyncio.wait({self._task}, timeout=None if due is None else max(0.0, due - loop.time()))
            except asyncio.CancelledError as again:
                cancelled = cancelled or again
                due = due or loop.time() + self._timeout_s
                continue
            if due is not None and loop.time() >= due and not self._task.done():
                if not next(cuts, False):
                    break
                due = loop.time() + GRACE_S
        new = [] if cancelled is None or cancelled is error else [cancelled]
        return new + self._errors()

    def _cuts(self) -> Iterator[bool]:
        """Cut what goes on now, as often as there may be steps; then give up."""
        for _ in range(2 * len(self._scopes.slots) + 2 * len(self._scopes.dropped) + 2):
            self._scopes.overdue = True
            self._task.cancel()
            yield True

    def _errors(self) -> list[BaseException]:
        if not self._task.done():
            return [TimeoutError("A layer did not let itself be left: its task is abandoned")]
        return [] if self._task.cancelled() else self._task.result()


def _without_cuts(errors: list[BaseException]) -> Iterator[BaseException]:
    """The errors of an entry that was cut by a cancellation, without that cancellation."""
    for each in errors:
        if isinstance(each, asyncio.CancelledError):
            yield from other_errors(each)
        else:
            yield each
