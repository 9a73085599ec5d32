"""A record of tool calls for loops whose library keeps none."""

from __future__ import annotations

import asyncio
import inspect
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dagbok import Outcome, TaskSpec
from dagbok.agents.layers import Compositor, LayerNode, LayerProvider, ToolCallsLayer, ToolCallsState
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.testing import context
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


class Mute:
    """It cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def nested(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (10**400, "1" + "0" * 400),
        (Mute(), "<Mute, which cannot be told: RuntimeError>"),
        ([Mute()], "<list, which cannot be told: RuntimeError>"),
        (nested(3_000), "<list, which cannot be told: RecursionError>"),
        (nested(230), "[" * 230 + "0" + "]" * 230),
        ({"e\u0301": 1, "\u00e9": 2}, '{"e\u0301":1,"\u00e9":2}'),
    ],
)
async def test_a_call_ends_as_the_tool_ended_whatever_can_be_kept_of_it(value: object, kept: str) -> None:
    """Its record is put down, as argument and as output."""
    seen: list[object] = []

    def tool(given: object) -> object:
        seen.append(given)
        return value

    async def loop(attempt: LayeredAttempt) -> Outcome:
        assert attempt.run.get_layer("calls", ToolCallsLayer).recorded(tool)(value) is value
        await attempt.put_down()
        return Outcome.candidate(0)

    task = context()
    await LayeredWorker(Compositor([LayerNode("calls", ToolCallsLayer)]), loop).work(task)
    assert len(seen) == 1
    state = task.session.load()["layers"]["calls"]["state"]
    written = unicodedata.normalize("NFC", kept)
    assert (state["begun"][0]["input"]["given"], state["ended"][0]["output"]) == (written, written)
    next_one = context(session=task.session.load())
    await LayeredWorker(Compositor([LayerNode("calls", ToolCallsLayer)]), loop).work(next_one)


async def test_text_that_is_no_unicode_is_written_out_wherever_a_call_has_it() -> None:
    def tool(**_: object) -> object:
        raise OSError("cannot read b\udcff.txt")

    tool.__name__ = "read\udcff"

    async def loop(attempt: LayeredAttempt) -> Outcome:
        with pytest.raises(OSError, match="cannot read"):
            attempt.run.get_layer("calls", ToolCallsLayer).recorded(tool)(**{"a\udcff": "b\udcff"})
        return Outcome.candidate(0)

    task = context()
    await LayeredWorker(Compositor([LayerNode("calls", ToolCallsLayer)]), loop).work(task)
    state = task.session.load()["layers"]["calls"]["state"]
    assert (state["begun"][0]["tool"], state["begun"][0]["input"]) == ("read\\udcff", {"a\\udcff": "'b\\udcff'"})
    assert state["ended"][0]["error"] == "OSError: cannot read b\\udcff.txt"


def test_an_error_that_cannot_be_told_is_raised_as_itself() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    def tool() -> None:
        raise Odd

    calls = layer()
    with pytest.raises(Odd):
        calls.recorded(tool)()
    assert calls.runtime_state.ended[0].error == "Odd: <Odd, which cannot be told: ValueError>"


def test_what_a_tool_gives_piece_by_piece_is_left_to_its_caller() -> None:
    calls = layer()
    assert list(calls.recorded(lambda: iter("ab"))()) == ["a", "b"]
    (rows,) = calls.recorded(lambda given: [given])(row for row in "cd")
    assert list(rows) == ["c", "d"]
    assert "generator object" in str(calls.runtime_state.begun[1].input["given"])


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
