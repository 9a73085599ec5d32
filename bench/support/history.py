"""A conversation that is resumed and goes on by two messages, against reading and writing all of it."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from dagbok.agents.layers import Compositor, Growing, LayerNode
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker, Loop
from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryLayer, PydanticAIHistoryState
from dagbok.events.specs import Outcome
from dagbok.testing import context
from tests.support.session_store import Store

TURN = 2
Timed = tuple[float, float]
"""Best and median, in ms."""


def messages(count: int) -> list[ModelMessage]:
    """Questions and answers by turns, about 0.7 kB of JSON each."""
    found: list[ModelMessage] = []
    for number in range(count // 2):
        found.append(ModelRequest(parts=[UserPromptPart(f"question {number}: {'why is it so? ' * 25}")]))
        found.append(ModelResponse(parts=[TextPart(f"answer {number}: {'it was so before. ' * 22}")]))
    return found


def measure(count: int, repeat: int) -> tuple[dict[str, Timed], dict[str, int]]:
    """Times by what is done, and sizes in bytes, of a conversation of `count` messages."""
    return asyncio.run(_measure(count, repeat))


async def _measure(count: int, repeat: int) -> tuple[dict[str, Timed], dict[str, int]]:
    said, new = messages(count), messages(TURN)
    whole, store = ModelMessagesTypeAdapter.dump_json(said), Store()
    await _told(store, said)
    ours = PydanticAIHistoryState(messages=Growing(said)).model_dump_json()
    found = store.found
    assert found is not None

    async def naive() -> None:
        ModelMessagesTypeAdapter.dump_json([*ModelMessagesTypeAdapter.validate_json(whole), *new])

    async def naive_in_our_form() -> None:
        state = PydanticAIHistoryState.model_validate_json(ours)
        state.messages.extend(new)
        state.model_dump_json()

    async def resumed(loop: Loop, **config: Any) -> None:
        store.found, store.written = found, 0
        await _attempt(store, loop, config)

    async def appends(attempt: LayeredAttempt) -> Outcome:
        attempt.run.get_layer("history", PydanticAIHistoryLayer).append_messages(new)
        await attempt.put_down()
        return Outcome.candidate(0)

    async def looks(attempt: LayeredAttempt) -> Outcome:
        attempt.run.get_layer("history", PydanticAIHistoryLayer).for_next_run()
        return await appends(attempt)

    ways: dict[str, Callable[[], Awaitable[None]]] = {
        "validate all, append, write all": naive,
        "the same in the form that is put down": naive_in_our_form,
        "resume, append": lambda: resumed(appends),
        "resume, look at the last 20, append": lambda: resumed(looks, max_messages=20),
        "resume, look at all, append": lambda: resumed(looks),
    }
    times = await _in_turn(ways, repeat)
    await resumed(appends)
    session = sum(map(len, store.parts))
    sizes = {"history": len(whole), "session": session, "parts": len(found.parts), "written by a turn": store.written}
    return times, sizes


async def _in_turn(ways: dict[str, Callable[[], Awaitable[None]]], repeat: int) -> dict[str, Timed]:
    """One after the other, again and again: what slows the machine for a while slows all."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeat + 2):
        for name, way in ways.items():
            gc.collect()
            start = time.perf_counter()
            await way()
            taken[name].append((time.perf_counter() - start) * 1e3)
    return {name: (min(each[2:]), statistics.median(each[2:])) for name, each in taken.items()}


async def _told(store: Store, said: list[ModelMessage]) -> None:
    """An attempt that puts a turn down for each two messages."""

    async def talks(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("history", PydanticAIHistoryLayer)
        for start in range(0, len(said), TURN):
            history.append_messages(said[start : start + TURN])
            await attempt.put_down()
        return Outcome.candidate(0)

    await _attempt(store, talks, {})


PLAN: Compositor = Compositor([LayerNode("history", PydanticAIHistoryLayer)])


async def _attempt(store: Store, loop: Loop, config: dict[str, Any]) -> None:
    task = context()
    task.open_session = store.session
    await LayeredWorker(PLAN, loop, configs={"history": config}).work(task)
