"""What else must not happen: contexts that swallow, hooks that cancel, limits of asyncio around and inside a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar

import pytest

from dagbok.agents.layers import (
    Compositor,
    ExitIntent,
    LayerNode,
    LayerRunSlot,
    LifecycleState,
    NoLayerDeps,
    PlainLayer,
    other_errors,
)
from tests.layers.parts import Told, traced

CALLER: ContextVar[str] = ContextVar("CALLER")


class Swallowing(PlainLayer[NoLayerDeps]):
    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        with suppress(LookupError):
            yield


class SameTask(PlainLayer[NoLayerDeps]):
    """Opened and closed by one task, and with the caller's context variables."""

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        task, said = asyncio.current_task(), CALLER.get()
        async with asyncio.TaskGroup():
            yield
        assert (asyncio.current_task(), said) == (task, "me")


async def test_a_context_cannot_swallow_the_error_of_the_body() -> None:
    with pytest.raises(LookupError):
        async with Compositor([LayerNode("a", Swallowing)]).enter():
            raise LookupError


async def test_a_resource_is_closed_by_the_task_that_opened_it() -> None:
    CALLER.set("me")
    async with Compositor([LayerNode("a", SameTask)]).enter():
        pass


async def test_a_hook_that_raises_a_cancellation_does_not_pass_for_an_entry() -> None:
    told = Told({"a.create": asyncio.CancelledError("hook")})
    with pytest.raises(asyncio.CancelledError):
        async with Compositor(traced(told, "a")).enter():
            told.log.append("body")
    assert told.log == ["a.res.enter", "a.create", "a.res.exit"]


async def test_a_timeout_around_a_run_stays_a_timeout() -> None:
    failure = ValueError("delete")
    told = Told({"a.delete": failure})
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.01), Compositor(traced(told, "a")).enter():
            await asyncio.Event().wait()
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    assert other_errors(caught.value.__cause__) == (failure,)


async def test_a_timeout_inside_a_hook_works_while_layers_are_left() -> None:
    class Patient(PlainLayer[NoLayerDeps]):
        async def on_context_delete(self) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError) as caught:
        async with Compositor([LayerNode("a", Patient)]).enter():
            raise asyncio.CancelledError
    assert other_errors(caught.value) == ()


async def test_a_run_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    for fails in ("a.create", "a.delete", "a.res.exit"):
        with pytest.raises(ValueError, match=fails):
            async with Compositor(traced(Told({fails: ValueError(fails)}), "a")).enter():
                pass
    assert asyncio.all_tasks() == before


def test_defect_19_the_core_deletes_by_default() -> None:
    assert LayerRunSlot(Swallowing(), LifecycleState.NEW).exit_intent is ExitIntent.DELETE
