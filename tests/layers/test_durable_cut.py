"""Attempts of layers that are stopped, and turns that are put down at once: nothing is lost, nothing stands twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel, Field

from dagbok import Outcome, TaskContext
from dagbok.agents.layers import Compositor, Growing, LayerConfig, LayerNode, NoLayerDeps, PlainLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.workers.terminal import Terminal
from dagbok.events.canonical import Json
from dagbok.testing import context
from tests.support.session_store import Store


class Sandbox(BaseModel):
    lease: str = "none"
    said: Growing[str] = Field(default_factory=Growing)
    plain: list[str] = Field(default_factory=list)


class SandboxLayer(PlainLayer[NoLayerDeps, LayerConfig, Sandbox]):
    """Has something outside: each entry has a new lease, each suspension an image."""

    type_id = "sandbox"

    async def on_context_create(self) -> None:
        self.runtime_state.lease = "created"

    async def on_context_resume(self) -> None:
        self.runtime_state.lease += "+resumed"

    async def on_context_suspend(self) -> None:
        self.runtime_state.lease += "+image"


def worker(loop: Callable[[LayeredAttempt], Awaitable[Outcome]], *more: LayerNode) -> LayeredWorker:
    return LayeredWorker(Compositor([LayerNode("box", SandboxLayer), *more]), loop)


def task_of(store: Store) -> TaskContext:
    task = context()
    task.open_session = store.session
    return task


def state_of(task: TaskContext, name: str = "box") -> Any:
    return task.session.load()["layers"][name]["state"]


def box_of(attempt: LayeredAttempt) -> Sandbox:
    return attempt.run.get_layer("box", SandboxLayer).runtime_state


class SlowStore(Store):
    """Writes a part when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.writing, self.go_on = asyncio.Event(), asyncio.Event()
        self.slow = False

    async def put_down(self, turn: int, keep: int, part: bytes) -> None:
        if self.slow:
            self.writing.set()
            await self.go_on.wait()
        await super().put_down(turn, keep, part)


async def test_a_turn_whose_putting_down_was_cut_stands_once() -> None:
    store = SlowStore()

    async def loop(attempt: LayeredAttempt) -> Outcome:
        box = box_of(attempt)
        store.slow = True
        for number in range(2):
            box.said.append(f"said {number}")
            box.plain.append(f"plain {number}")
            putting_down = asyncio.ensure_future(attempt.put_down())
            await store.writing.wait()
            putting_down.cancel()
            with pytest.raises(asyncio.CancelledError):
                await putting_down
        store.go_on.set()
        return Outcome.candidate(0)

    task = task_of(store)
    await worker(loop).work(task)
    assert state_of(task) == {
        "lease": "created+image",
        "said": ["said 0", "said 1"],
        "plain": ["plain 0", "plain 1"],
    }
    assert state_of(task_of(store)) == state_of(task)


async def test_turns_that_are_put_down_at_once_stand_once() -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        box = box_of(attempt)

        async def agent(name: str) -> None:
            for number in range(5):
                box.said.append(f"{name} {number}")
                box.plain.append(f"{name} {number}")
                await attempt.put_down()

        await asyncio.gather(agent("a"), agent("b"), agent("c"))
        return Outcome.candidate([list(box.said), box.plain])

    store = Store()
    task = task_of(store)
    outcome = await worker(loop).work(task)
    said, plain = outcome.artifacts["result"].content
    assert len(set(said)) == len(said) == 15
    assert state_of(task_of(store)) == {"lease": "created+image", "said": said, "plain": plain}


async def test_an_item_that_is_exchanged_while_it_is_written_is_written_again() -> None:
    store = SlowStore()

    async def loop(attempt: LayeredAttempt) -> Outcome:
        box = box_of(attempt)
        box.said += ["one", "two"]
        store.slow = True
        putting_down = asyncio.ensure_future(attempt.put_down())
        await store.writing.wait()
        box.said[1] = "another"
        store.go_on.set()
        await putting_down
        return Outcome.candidate(0)

    await worker(loop).work(task_of(store))
    assert state_of(task_of(store))["said"] == ["one", "another"]


async def cut(working: LayeredWorker, task: TaskContext, running: asyncio.Event) -> None:
    attempt = asyncio.ensure_future(working.work(task))
    await running.wait()
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt


async def test_an_attempt_that_is_stopped_in_its_first_turn_tells_what_its_hooks_made() -> None:
    store, running = Store(), asyncio.Event()

    async def loop(attempt: LayeredAttempt) -> Outcome:
        assert state_of(attempt.task)["lease"] == box_of(attempt).lease, "also when it is killed now"
        running.set()
        await asyncio.Event().wait()
        raise AssertionError

    await cut(worker(loop), task_of(store), running)
    assert state_of(task_of(store))["lease"] == "created+image"
    running.clear()
    await cut(worker(loop), task_of(store), running)
    assert state_of(task_of(store))["lease"] == "created+image+resumed+image"


async def test_an_attempt_that_is_stopped_does_not_wait_for_ever_to_put_down(monkeypatch: pytest.MonkeyPatch) -> None:
    store, running = SlowStore(), asyncio.Event()
    monkeypatch.setattr("dagbok.agents.layers.durable.failed.STOPPED_S", 0.01)

    async def loop(attempt: LayeredAttempt) -> Outcome:
        store.slow = True
        running.set()
        await asyncio.Event().wait()
        raise AssertionError

    await cut(worker(loop), task_of(store), running)
    assert state_of(task_of(store))["lease"] == "created"
    store.go_on.set()


class Leaking(PlainLayer[NoLayerDeps, LayerConfig, Sandbox]):
    """Its resource cannot be closed."""

    type_id = "leaking"

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        yield
        raise OSError("cannot be closed")


async def test_a_layer_whose_resource_fails_has_its_last_turn_and_says_that_it_was_not_left_cleanly() -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        await attempt.put_down()
        attempt.run.get_layer("leaking", Leaking).runtime_state.said.append("the last turn")
        return Outcome.candidate(0)

    store = Store()
    task = task_of(store)
    with pytest.raises(OSError, match="cannot be closed"):
        await worker(loop, LayerNode("leaking", Leaking)).work(task)
    written = task.session.load()["layers"]
    assert written["leaking"]["state"]["said"] == ["the last turn"]
    assert (written["leaking"]["lifecycle"], written["leaking"]["cleanly"]) == ("suspended", False)
    assert "cleanly" not in written["box"]


class Undeletable(PlainLayer[NoLayerDeps, LayerConfig, Sandbox]):
    """Its delete hook fails once."""

    type_id = "undeletable"
    fails = True

    async def on_context_delete(self) -> None:
        if Undeletable.fails:
            Undeletable.fails = False
            raise OSError("cannot be deleted")


async def test_a_layer_that_could_not_be_deleted_is_suspended_for_the_next_attempt() -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        layer = attempt.run.get_layer("undeletable", Undeletable)
        layer.runtime_state.said.append("once more")
        attempt.run.delete_layer_on_exit("undeletable")
        return Outcome.candidate(list(layer.runtime_state.said))

    store = Store()
    with pytest.raises(OSError, match="cannot be deleted"):
        await worker(loop, LayerNode("undeletable", Undeletable)).work(task_of(store))
    assert task_of(store).session.load()["layers"]["undeletable"]["lifecycle"] == "suspended"
    outcome = await worker(loop, LayerNode("undeletable", Undeletable)).work(task_of(store))
    assert outcome.artifacts["result"].content == ["once more", "once more"]
    assert task_of(store).session.load()["layers"]["undeletable"]["lifecycle"] == "closed"


class NotToResume(PlainLayer[NoLayerDeps, LayerConfig, Sandbox]):
    type_id = "not_to_resume"

    async def on_context_resume(self) -> None:
        raise OSError("gone")


async def test_an_entry_that_fails_keeps_what_the_hooks_of_the_others_made_of_their_states() -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        box_of(attempt).said.append("said")
        return Outcome.candidate(0)

    store, more = Store(), LayerNode("last", NotToResume)
    await worker(loop, more).work(task_of(store))
    before = task_of(store).session.load()["layers"]["last"]
    with pytest.raises(OSError, match="gone"):
        await worker(loop, more).work(task_of(store))
    after = task_of(store)
    assert state_of(after) == {"lease": "created+image+resumed+image", "said": ["said"], "plain": []}
    assert after.session.load()["layers"]["last"] == before


@pytest.mark.parametrize("value", [[1, 2], {"layers": []}, "text", {"format": "dagbok.layers", "v": 99}])
async def test_a_session_that_is_not_of_layers_ends_the_task(value: Json) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        raise AssertionError

    with pytest.raises(Terminal, match="not of layers as here"):
        await worker(loop).work(context(session=value))
    with pytest.raises(Terminal, match="not of layers as here"):
        await worker(loop).dispose(context(session=value))


async def test_blocking_on_the_loop_of_the_attempt_is_refused() -> None:
    task = context()
    task.session.belongs_to(asyncio.get_running_loop())
    with pytest.raises(RuntimeError, match="await save"):
        task.session.save_blocking(1)
    await asyncio.to_thread(task.session.save_blocking, 1)
    assert await task.session.fetch() == 1
