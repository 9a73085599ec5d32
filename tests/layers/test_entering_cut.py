"""A caller who is cancelled while layers are entered, up to the moment in which it would have the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from dagbok.agents.layers import Compositor, LayerNode, LayerProvider, own_snapshot_of
from tests.layers.changing import hooks, states, suspended
from tests.layers.parts import Told, Traced, traced


def cancel_soon(task: asyncio.Task[object]) -> None:
    asyncio.get_running_loop().call_soon(task.cancel)


class Last(Traced):
    """Does something at the end of its resume hook."""

    at_the_end: Callable[[], None] = staticmethod(lambda: None)

    async def on_context_resume(self) -> None:
        await super().on_context_resume()
        self.at_the_end()


class Stubborn(Traced):
    """Its resume hook does not let itself be cancelled."""

    async def on_context_resume(self) -> None:
        try:
            await super().on_context_resume()
        except asyncio.CancelledError:
            self.told.log.append(f"{self.name}.resumed")


def node(told: Told, name: str, layer: type[Traced]) -> LayerNode:
    return LayerNode(name, LayerProvider.from_factory(layer_type=layer, create=lambda _: layer(name, told)))


async def test_who_is_cancelled_when_the_last_layer_is_entered_finds_all_suspended_again() -> None:
    told = Told()
    nodes = [*traced(told, "a"), node(told, "b", Last)]
    snapshot = await suspended(*nodes)
    told.log.clear()
    caller = asyncio.current_task()
    assert caller is not None
    Last.at_the_end = staticmethod(partial(cancel_soon, caller))
    try:
        with pytest.raises(asyncio.CancelledError) as caught:
            async with Compositor(nodes).enter(session_snapshot=snapshot):
                raise AssertionError
    finally:
        Last.at_the_end = staticmethod(lambda: None)
    caller.uncancel()
    assert hooks(told) == ["a.resume", "b.resume", "b.suspend", "a.suspend"]
    assert states(own_snapshot_of(caught.value)) == {"a": ("suspended", 1), "b": ("suspended", 2)}


async def test_a_hook_that_swallows_the_cancellation_does_not_make_anybody_wait_and_nothing_is_deleted() -> None:
    told = Told(waits={"b.resume"})
    nodes = [*traced(told, "a"), node(told, "b", Stubborn), *traced(told, "c")]
    snapshot = await suspended(*nodes)
    told.log.clear()

    async def enter() -> None:
        async with Compositor(nodes, cleanup_timeout_s=3600).enter(session_snapshot=snapshot):
            raise AssertionError

    entering = asyncio.ensure_future(enter())
    await told.reached.wait()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await asyncio.wait_for(entering, 30)
    assert hooks(told)[-3:] == ["c.suspend", "b.suspend", "a.suspend"]
    assert "b.resumed" in told.log
    assert not any(each.endswith("delete") for each in told.log)
    assert states(own_snapshot_of(caught.value)) == {name: ("suspended", n) for n, name in enumerate("abc", 1)}
