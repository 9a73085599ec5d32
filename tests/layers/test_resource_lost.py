"""A resource that fails while the body works: the body is stopped, all are left behind it, and it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from dagbok import Outcome
from dagbok.agents.layers import (
    Compositor,
    CompositorRun,
    LayerNode,
    LayerProvider,
    NoLayerDeps,
    PlainLayer,
    own_snapshot_of,
)
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.testing import context
from tests.layers.changing import hooks, states, suspended
from tests.layers.parts import Told, Traced, traced


class Line(PlainLayer[NoLayerDeps]):
    """A connection with a reader: the task group that holds it fails when it breaks."""

    def __init__(self) -> None:
        self.breaks = asyncio.Event()

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            reader = group.create_task(self._read())
            yield
            reader.cancel()

    async def _read(self) -> None:
        await self.breaks.wait()
        raise OSError("connection lost")


LINE = LayerNode("line", LayerProvider.from_factory(layer_type=Line, create=lambda _: Line()))


def broken(run: CompositorRun) -> None:
    run.get_layer("line", Line).breaks.set()


def is_lost(group: BaseException) -> bool:
    return isinstance(group, ExceptionGroup) and str(group.exceptions[0]) == "connection lost"


async def within(body: Callable[[CompositorRun], Awaitable[None]], *nodes: LayerNode) -> None:
    async with Compositor(nodes).enter() as run:
        await body(run)


async def test_the_body_is_stopped_and_nothing_is_left_before_it_has_ended() -> None:
    told = Told()

    async def body(run: CompositorRun) -> None:
        run.suspend_on_exit()
        broken(run)
        try:
            await asyncio.Event().wait()
        finally:
            told.log.append("body.ends")

    with pytest.raises(ExceptionGroup) as caught:
        await within(body, *traced(told, "a"), LINE)
    assert is_lost(caught.value)
    assert hooks(told) == ["a.create", "body.ends", "a.suspend"]
    caller = asyncio.current_task()
    assert caller is not None
    assert caller.cancelling() == 0


async def test_what_the_body_raises_when_it_is_stopped_is_told_beside() -> None:
    async def body(run: CompositorRun) -> None:
        broken(run)
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError("the body")

    with pytest.raises(ExceptionGroup) as caught:
        await within(body, LINE)
    of_body, of_line = caught.value.exceptions
    assert isinstance(of_body, KeyError)
    assert is_lost(of_line)


async def test_a_body_that_goes_on_all_the_same_ends_with_the_error_of_the_resource() -> None:
    told = Told()

    async def body(run: CompositorRun) -> None:
        broken(run)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.Event().wait()
        run.suspend_on_exit()

    with pytest.raises(ExceptionGroup) as caught:
        await within(body, *traced(told, "a"), LINE)
    assert is_lost(caught.value)
    assert hooks(told) == ["a.create", "a.suspend"]


async def test_who_is_cancelled_as_well_is_cancelled() -> None:
    async def body(run: CompositorRun) -> None:
        broken(run)
        try:
            await asyncio.Event().wait()
        finally:
            working.cancel()

    working = asyncio.ensure_future(within(body, LINE))
    with pytest.raises(asyncio.CancelledError):
        await working


async def test_a_resource_that_stops_the_run_and_says_nothing_is_told_too() -> None:
    class Silent(PlainLayer[NoLayerDeps]):
        async def on_context_create(self) -> None:
            self.owner = asyncio.current_task()

    async def body(run: CompositorRun) -> None:
        owner = run.get_layer("silent", Silent).owner
        assert owner is not None
        owner.cancel()
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="did not say why"):
        await within(body, LayerNode("silent", Silent))


async def test_a_resource_that_fails_before_the_caller_has_the_run_is_an_entry_that_failed() -> None:
    told = Told()

    class Early(Traced):
        async def on_context_resume(self) -> None:
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_soon(task.cancel)

    early = LayerProvider.from_factory(layer_type=Early, create=lambda _: Early("b", told))
    nodes = [*traced(told, "a"), LayerNode("b", early)]
    snapshot = await suspended(*nodes)
    told.log.clear()
    with pytest.raises(RuntimeError, match="did not say why") as caught:
        async with Compositor(nodes).enter(session_snapshot=snapshot):
            raise AssertionError
    assert hooks(told) == ["a.resume", "b.suspend", "a.suspend"]
    assert states(own_snapshot_of(caught.value)) == {"a": ("suspended", 1), "b": ("suspended", 2)}


async def test_a_caller_who_is_cancelled_in_that_moment_is_cancelled_and_has_the_snapshot() -> None:
    class Early(PlainLayer[NoLayerDeps]):
        async def on_context_create(self) -> None:
            task = asyncio.current_task()
            assert task is not None
            loop = asyncio.get_running_loop()
            loop.call_soon(task.cancel)
            loop.call_soon(entering.cancel)

    async def enter() -> None:
        async with Compositor([LayerNode("early", Early)]).enter():
            raise AssertionError

    entering = asyncio.ensure_future(enter())
    with pytest.raises(asyncio.CancelledError) as caught:
        await entering
    assert own_snapshot_of(caught.value) is not None


async def test_a_loop_over_it_is_stopped_and_its_turns_are_put_down() -> None:
    told = Told()

    async def loop(attempt: LayeredAttempt) -> Outcome:
        attempt.run.get_layer("a", Traced).runtime_state.count = 7
        broken(attempt.run)
        await asyncio.Event().wait()
        raise AssertionError

    task = context()
    with pytest.raises(ExceptionGroup) as caught:
        await LayeredWorker(Compositor([*traced(told, "a"), LINE]), loop).work(task)
    assert is_lost(caught.value)
    layer = task.session.load()["layers"]["a"]
    assert (layer["lifecycle"], layer["state"]) == ("suspended", {"count": 7})


async def test_an_entering_is_used_once() -> None:
    told = Told()
    entering = Compositor(traced(told, "a")).enter()
    async with entering:
        with pytest.raises(RuntimeError, match="used before"):
            async with entering:
                raise AssertionError
    assert hooks(told) == ["a.create", "a.delete"]
    with pytest.raises(RuntimeError, match="used before"):
        async with entering:
            raise AssertionError
