"""Sessions that cannot be gone on with are told at once and by name, and who is cut at the end loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import new_class
from typing import Any

import pytest
from pydantic import BaseModel, Field

from dagbok import Outcome
from dagbok.agents.layers import (
    Compositor,
    EmptyLayerConfig,
    Growing,
    LayerNode,
    NoLayerDeps,
    PlainLayer,
    own_snapshot_of,
)
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker, session_snapshot
from dagbok.agents.layers.interrupted import INTERRUPTED
from dagbok.agents.layers.openai_agents import OpenAIAgentsSessionLayer
from dagbok.agents.layers.openai_agents.items import closed
from dagbok.agents.workers.sessions.session import TaskSession
from dagbok.agents.workers.terminal import Terminal
from dagbok.events.errors import InvalidInput, Refused
from dagbok.testing import context
from tests.layers.changing import node, suspended
from tests.layers.parts import Told

LAYER: dict[str, Any] = {"type": "box", "lifecycle": "suspended", "state": {}}


class Number(BaseModel):
    n: int = 0
    holds: str = ""


class Box(PlainLayer[NoLayerDeps, EmptyLayerConfig, Number]):
    type_id = "box"

    async def on_context_suspend(self) -> None:
        self.runtime_state.holds = "image"


def boxes(loop: Callable[[LayeredAttempt], Awaitable[Outcome]], *names: str) -> LayeredWorker:
    return LayeredWorker(Compositor([LayerNode(name, Box) for name in names]), loop)


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"layers": [1]},
        {"layers": {"a": None}},
        {"layers": {"a": {"lifecycle": "suspended", "state": {}}}},
        {"layers": {"a": {**LAYER, "state": [1]}}},
        {"layers": {"a": {**LAYER, "lifecycle": "active"}}},
        {"layers": {"a": {**LAYER, "state_version": 0}}},
        {"layers": {"a": LAYER}, "order": 5},
        {"layers": {"a": LAYER}, "order": []},
        {"layers": {"a": LAYER}, "order": ["a", "a"]},
    ],
)
async def test_a_damaged_session_ends_the_task_and_is_told_as_damaged(damaged: dict[str, Any]) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        raise AssertionError

    value = {"format": "dagbok.layers", "v": 1, **damaged}
    with pytest.raises(Refused, match="damaged"):
        session_snapshot(value)
    worker = boxes(loop, "a")
    for attempt in (worker.work, worker.dispose):
        with pytest.raises(Terminal, match="damaged"):
            await attempt(context(session=value))


@pytest.mark.parametrize("value", [None, ["turn"], {"mine": 1}])
def test_what_is_no_session_of_layers_is_refused_with_advice_that_fits(value: object) -> None:
    with pytest.raises(Refused, match="not of layers") as caught:
        session_snapshot(value)
    assert "layered worker" in str(caught.value)


@pytest.mark.parametrize("first", [True, False])
async def test_a_state_that_no_session_takes_is_told_as_of_its_layer(first: bool) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        if not first:
            await attempt.put_down()
        attempt.run.get_layer("b", Box).runtime_state.n = 2**70
        with pytest.raises(InvalidInput, match=r"layer 'b'.* beyond 64 bits") as caught:
            await attempt.put_down()
        assert "Outcome" not in str(caught.value)
        attempt.run.get_layer("b", Box).runtime_state.n = 7
        return Outcome.candidate(0)

    task = context()
    await boxes(loop, "a", "b").work(task)
    assert task.session.load()["layers"]["b"]["state"]["n"] == 7


async def test_a_session_shows_what_the_log_has_while_more_is_being_written() -> None:
    writing, goes_on = asyncio.Event(), asyncio.Event()

    async def put_down(turn: int, keep: int, part: bytes) -> None:
        if turn > 1:
            writing.set()
            await goes_on.wait()
            raise OSError("the log refuses it")

    session = TaskSession(None, lambda ref: b"", put_down)
    await session.save({"n": 1})
    saving = asyncio.ensure_future(session.save({"n": 2}))
    await writing.wait()
    assert (session.load(), session.load_unread(), session.turn) == ({"n": 1}, {"n": 1}, 1)
    goes_on.set()
    with pytest.raises(OSError, match="refuses"):
        await saving
    assert session.load() == {"n": 1}


class Renamed(BaseModel):
    read_as: Growing[str] = Field(default_factory=Growing, validation_alias="R")
    written_as: list[str] = Field(default_factory=list, serialization_alias="W")
    both: Growing[str] = Field(default_factory=Growing, alias="B")


class RenamedLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, Renamed]):
    pass


@pytest.mark.parametrize("name", ["read_as", "written_as"])
async def test_a_field_that_would_not_be_read_from_where_it_is_written_is_refused(name: str) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        state = attempt.run.get_layer("a", RenamedLayer).runtime_state
        state.both.append("turn")
        await attempt.put_down()
        getattr(state, name).append("turn")
        with pytest.raises(ValueError, match=f"{name} is written as"):
            await attempt.put_down()
        getattr(state, name).clear()
        return Outcome.candidate(0)

    task = context()
    await LayeredWorker(Compositor([LayerNode("a", RenamedLayer)]), loop).work(task)
    assert task.session.load()["layers"]["a"]["state"]["B"] == ["turn"]


@pytest.mark.parametrize("a_turn_is_under_way", [True, False])
async def test_who_is_cancelled_in_the_last_put_down_has_put_down_how_the_layers_were_left(
    a_turn_is_under_way: bool,
) -> None:
    writing, goes_on, written = asyncio.Event(), asyncio.Event(), list[bytes]()
    turns: list[asyncio.Task[None]] = []

    async def put_down(turn: int, keep: int, part: bytes) -> None:
        if turn > 1:
            writing.set()
            await goes_on.wait()
        written.append(part)

    async def loop(attempt: LayeredAttempt) -> Outcome:
        attempt.run.get_layer("a", Box).runtime_state.n = 1
        if a_turn_is_under_way:
            turns.append(asyncio.create_task(attempt.put_down()))
            await writing.wait()
        return Outcome.candidate(0)

    task = context()
    session = TaskSession(None, lambda ref: b"", put_down)
    task.open_session = lambda: session
    working = asyncio.ensure_future(boxes(loop, "a").work(task))
    await writing.wait()
    working.cancel()
    await asyncio.wait({working}, timeout=0)
    assert not working.done()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert b"image" in written[-1]


async def test_who_is_cancelled_at_the_claim_of_a_snapshot_has_it_to_try_again_with() -> None:
    asked = asyncio.Event()

    class Slow:
        """Its answers get lost, but the first that it is asked is kept."""

        async def claim(self, snapshot_id: str) -> bool:
            asked.set()
            await asyncio.Event().wait()
            return True

    nodes = [node(Told(), "a")]
    first = await suspended(*nodes)
    plan = Compositor(nodes, snapshot_claims=Slow())

    async def enter() -> None:
        async with plan.enter(session_snapshot=first):
            raise AssertionError

    async def dispose() -> None:
        await plan.dispose(first)

    for use in (enter, dispose):
        asked.clear()
        using = asyncio.ensure_future(use())
        await asked.wait()
        using.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await using
        left = own_snapshot_of(caught.value)
        assert left is not None
        assert (left.parent, left.layers) == (first.id, first.layers)


@pytest.mark.parametrize(
    "wrong", [{"state_version": 0}, {"state_version": "2"}, {"state_version": True}, {"type_id": 5}]
)
def test_a_layer_whose_snapshots_nobody_could_read_is_no_class(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(wrong))):
        new_class("Wrong", (PlainLayer[NoLayerDeps],), {}, lambda names: names.update(wrong))


@pytest.mark.parametrize(
    "kind", ["function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call"]
)
def test_a_call_that_the_program_was_to_answer_is_closed_behind_a_stop(kind: str) -> None:
    call: dict[str, Any] = {"type": kind, "call_id": "c1"}
    answer = {**closed([call])[1], "type": f"{kind}_output"}
    assert closed([call, {"role": "user"}]) == [call, answer, {"role": "user"}]
    assert INTERRUPTED in str(answer)
    assert closed([call, answer]) == [call, answer]


@pytest.mark.parametrize("refused", [{"role": "user", "content": "bad \udcff"}, {"n": 2**70}, "no object"])
async def test_an_item_of_a_history_that_no_session_takes_is_refused_and_later_ones_are_put_down(refused: Any) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        session = attempt.run.get_layer("history", OpenAIAgentsSessionLayer).session(attempt.put_down)
        with pytest.raises((InvalidInput, ValueError)):
            await session.add_items([{"role": "user", "content": "beside it"}, refused])
        await session.add_items([{"role": "user", "content": "good"}])
        return Outcome.candidate(0)

    task = context()
    await LayeredWorker(Compositor([LayerNode("history", OpenAIAgentsSessionLayer)]), loop).work(task)
    assert [item["content"] for item in task.session.load()["layers"]["history"]["state"]["items"]] == ["good"]
