"""The task in which the layers of one run are entered and left.

Leaving must not be cut short when the caller is cancelled again, and a resource must be closed by the task that opened
it (cancel scopes and task groups demand that). So one task of its own does both, and the caller waits for it. It has a
copy of the caller's context variables; what hooks set there, the body does not see.

A resource that fails while the body works (its task group does) cancels that task. So the body is cancelled, as that of
a task group is, and the layers are left when it has ended; the run then ends with the error of the resource.
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
        loop, self._caller = asyncio.get_running_loop(), asyncio.current_task()
        self._cancelled_before = 0 if self._caller is None else self._caller.cancelling()
        self._in_body = self._body_stopped = False
        self._lost: asyncio.CancelledError | None = None
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
            self._may_leave(cancelled)
            if not self._entered.done():
                self._task.cancel()
            return [cancelled, *_without_cuts(await self._end(cancelled))]
        if not self._entered.done():
            return self._errors() or [asyncio.CancelledError()]
        if self._lost is not None:
            return await self._end(None) or [_silent(self._lost)]
        self._in_body = True
        return []

    def of_body(self, error: BaseException | None) -> BaseException | None:
        """What the body ended with; none where it was only stopped because of a resource. Asked once, before
        `leave`."""
        if not self._body_stopped or self._caller is None or asyncio.current_task() is not self._caller:
            return error
        is_own = self._caller.uncancel() <= self._cancelled_before
        return None if is_own and isinstance(error, asyncio.CancelledError) else error

    async def leave(self, error: BaseException | None) -> list[BaseException]:
        """Leave all layers and wait for that, also when the caller is cancelled meanwhile. `error` is that of the body.

        Returns:
            The errors of leaving, and the CancelledError of a cancellation meanwhile. One at least where the body was
            stopped.
        """
        self._may_leave(error)
        errors = await self._end(error)
        return errors if self._lost is None or errors or error is not None else [_silent(self._lost)]

    def _may_leave(self, error: BaseException | None) -> None:
        if not self._leaving.done():
            self._leaving.set_result(error)

    async def _live(self) -> list[BaseException]:
        try:
            await self._scopes.enter()
        except BaseException as failed:
            return [failed]
        self._entered.set_result(None)
        return await self._scopes.leave(await self._until_left())

    async def _until_left(self) -> BaseException | None:
        """Wait for the end of the body, and stop it when a scope of a layer fails, or the loop closes. Nobody waits for
        a body that is not there yet, or never comes back."""
        awaited: set[asyncio.Future[Any]] = {self._leaving}
        while not self._leaving.done():
            try:
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as lost:
                self._lost = self._lost or lost
                if self._in_body and not self._body_stopped and self._caller is not None:
                    self._body_stopped = self._caller.cancel()
                    awaited.add(self._caller)
            if self._lost is not None and (not self._body_stopped or self._caller is None or self._caller.done()):
                break
        ended = self._leaving.result() if self._leaving.done() else None
        return ended or self._lost

    async def _end(self, error: BaseException | None) -> list[BaseException]:
        loop = asyncio.get_running_loop()
        cancelled = error if isinstance(error, asyncio.CancelledError) else None
        due = None if cancelled is None else loop.time() + self._timeout_s
        cuts = self._cuts()
        while not self._task.done():
            try:
                await asyncio.wait({self._task}, timeout=None if due is None else max(0.0, due - loop.time()))
            except asyncio.CancelledError as again:
                if self._is_stop_of_body():
                    continue
                cancelled = cancelled or again
                due = due or loop.time() + self._timeout_s
                continue
            if due is not None and loop.time() >= due and not self._task.done():
                if not next(cuts, False):
                    break
                due = loop.time() + GRACE_S
        new = [] if cancelled is None or cancelled is error else [cancelled]
        return new + self._errors()

    def _is_stop_of_body(self) -> bool:
        """A cancellation that the body did not live to see; a later one counts."""
        caller = self._caller
        if caller is None or caller is not asyncio.current_task():
            return False
        return self._body_stopped and caller.cancelling() <= self._cancelled_before

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


def _silent(lost: asyncio.CancelledError) -> RuntimeError:
    """Why a run ends where a resource has stopped it and raises nothing."""
    silent = RuntimeError("A resource of a layer ended while the run went on, and did not say why")
    silent.__cause__ = lost
    return silent


def _without_cuts(errors: list[BaseException]) -> Iterator[BaseException]:
    """The errors of an entry that was cut by a cancellation, without that cancellation."""
    for each in errors:
        if isinstance(each, asyncio.CancelledError):
            yield from other_errors(each)
        else:
            yield each
