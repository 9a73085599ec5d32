"""A record of tool calls for loops whose library keeps none."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dagbok import Outcome, TaskSpec
from dagbok.agents.layers import Compositor, LayerNode, LayerProvider, ToolCallsLayer, ToolCallsState
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from tests.support.hosts import hosted


def layer(**config: Any) -> ToolCallsLayer:
    return LayerProvider.from_layer_type(ToolCallsLayer).create_layer(config)


def add(left: int, right: int = 2) -> int:
    """Sum of two numbers."""
    return left + right


async def test_a_recorded_tool_looks_and_works_as_before() -> None:
    calls = layer()
    recorded = calls.recorded(add)
    assert (recorded(1, right=3), recorded(1)) == (4, 3)
    assert (recorded.__name__, recorded.__doc__) == ("add", "Sum of two numbers.")
    assert inspect.signature(recorded) == inspect.signature(add)
    told = [(begun.tool, begun.input, ended and ended.output) for begun, ended in calls.runtime_state.calls]
    assert told == [("add", {"left": 1, "right": 3}, 4), ("add", {"left": 1}, 3)]
    assert all(ended is not None and begun.at <= ended.at for begun, ended in calls.runtime_state.calls)


async def test_an_error_and_a_cancellation_are_ends_and_are_raised() -> None:
    calls = layer()

    async def look(at: int) -> int:
        if at == 0:
            raise LookupError("nothing there")
        await asyncio.Event().wait()
        return at

    recorded = calls.recorded(look)
    assert inspect.iscoroutinefunction(recorded)
    with pytest.raises(LookupError, match="nothing there"):
        await recorded(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await recorded(at=1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        await recorded(1, where=2)
    assert [each.error for each in calls.runtime_state.ended][:2] == ["LookupError: nothing there", "CancelledError: "]
    assert calls.runtime_state.begun[2].input == {"0": 1, "where": 2}


async def test_what_is_secret_is_not_kept_what_is_large_is_cut_and_what_is_no_json_stands_as_text() -> None:
    calls = layer(max_chars=21, secret_arguments=["key"])

    circle: list[object] = []
    circle.append(circle)

    def ask(key: str, what: object) -> object:
        return what

    recorded = calls.recorded(ask)
    recorded("k-123", "x")
    recorded("k-123", "y" * 50)
    recorded("k-123", float("inf"))
    recorded(key="k-123", what=object)
    recorded("k-123", circle)
    recorded("k-123", "\ud800")
    recorded("k-123", 2**64)
    with pytest.raises(TypeError):
        recorded("k-123")
    assert "k-123" not in calls.runtime_state.model_dump_json()
    assert calls.runtime_state.begun[0].input == {"key": "…", "what": "x"}
    assert [each.output for each in calls.runtime_state.ended] == [
        "x",
        "y" * 21 + " … 29 characters left out",
        "Infinity",
        "<class 'object'>",
        "[[...]]",
        "'\\ud800'",
        2.0**64,
        None,
    ]


def test_a_secret_among_further_keywords_is_not_kept_either() -> None:
    calls = layer(secret_arguments=["key"])

    def ask(*what: str, **more: str) -> None: ...

    calls.recorded(ask)("a", "b", key="k-123", of="c")
    assert calls.runtime_state.begun[0].input == {"what": ["a", "b"], "key": "…", "of": "c"}


def test_calls_from_many_threads_keep_their_ends() -> None:
    calls = layer()
    recorded = calls.recorded(add)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(recorded, range(500)))
    found = [(begun.input, ended and ended.output) for begun, ended in calls.runtime_state.calls]
    assert sorted(found, key=str) == sorted((({"left": n}, n + 2) for n in range(500)), key=str)


async def test_the_calls_of_a_past_run_are_in_its_session_also_of_an_attempt_that_was_killed(tmp_path: Path) -> None:
    began = asyncio.Event()

    async def wait(attempt: int) -> str:
        began.set()
        if attempt == 1:
            await asyncio.Event().wait()
        return "waited"

    async def loop(attempt: LayeredAttempt) -> Outcome:
        calls = attempt.run.get_layer("calls", ToolCallsLayer)
        working = asyncio.ensure_future(calls.recorded(wait)(attempt.task.epoch))
        await began.wait()
        await attempt.put_down()
        return Outcome.candidate(await working)

    worker = LayeredWorker(Compositor([LayerNode("calls", ToolCallsLayer)]), loop).worker("waits")
    async with hosted(tmp_path, worker) as dagbok:
        run = await dagbok.start(TaskSpec(id="t", goal="wait", worker="waits", verifier="yes"))
        await began.wait()
        async for event in dagbok.events(run):
            if event.type == "SessionSuspended":
                break
    async with hosted(tmp_path, worker) as dagbok:
        assert (await dagbok.wait(run)).json() == "waited"
        session = (await dagbok.session(run, "t")).value
    state = ToolCallsState.model_validate(session["layers"]["calls"]["state"])
    assert [(begun.input, ended and ended.output) for begun, ended in state.calls] == [
        ({"attempt": 1}, None),
        ({"attempt": 2}, "waited"),
    ]
