"""Every tool call of a run that is over can be read: what it was given, what it gave, when, and how it ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok import Outcome, TaskSpec
from dagbok.agents.layers import Compositor, LayerNode
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.layers.pydantic_ai import (
    PydanticAIHistoryLayer,
    ToolCallRecord,
    keep_steps,
    tool_calls,
    tool_calls_of,
)
from tests.support.hosts import hosted

WHEN = datetime(2026, 1, 2, tzinfo=UTC)
LATER = WHEN + timedelta(seconds=3)


def said(*parts: ToolCallPart | NativeToolCallPart | NativeToolReturnPart | TextPart) -> ModelResponse:
    return ModelResponse(parts=list(parts), timestamp=WHEN)


async def test_defect_20_every_call_of_a_past_run_has_its_input_its_output_and_its_times(tmp_path: Path) -> None:
    def look(at: int) -> dict[str, int]:
        if at == 0:
            raise ModelRetry("there is nothing at 0")
        return {"seen": at}

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls = len([message for message in messages if isinstance(message, ModelResponse)])
        if calls == 3:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("look", {"at": calls}, tool_call_id="same")])

    async def loop(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("talk", PydanticAIHistoryLayer)
        async with Agent(FunctionModel(model), tools=[look]).iter("look", message_history=[]) as steps:
            return Outcome.candidate((await keep_steps(steps, history, attempt.put_down)).output)

    worker = LayeredWorker(Compositor([LayerNode("talk", PydanticAIHistoryLayer)]), loop).worker("looks")
    async with hosted(tmp_path, worker) as dagbok:
        run = (await dagbok.run(TaskSpec(id="t", goal="look", worker="looks", verifier="yes"))).run
    async with hosted(tmp_path, worker) as dagbok:
        calls = tool_calls_of((await dagbok.session(run, "t")).value)
    assert list(calls) == ["talk"]
    told = [(call.tool, call.input, call.outcome, call.output) for call in calls["talk"]]
    assert told[1:] == [
        ("look", {"at": 1}, "success", {"seen": 1}),
        ("look", {"at": 2}, "success", {"seen": 2}),
    ]
    assert told[0][:3] == ("look", {"at": 0}, "retried")
    assert "there is nothing at 0" in str(told[0][3])
    assert all(call.ended_at is not None and call.ended_at >= call.called_at for call in calls["talk"])


def test_a_call_that_nobody_answered_is_open_and_one_that_was_cut_is_interrupted() -> None:
    history = PydanticAIHistoryLayer()
    history.append_messages([said(ToolCallPart("look", "{}", tool_call_id="c"))])
    assert tool_calls(history.message_history) == [ToolCallRecord("c", "look", {}, WHEN)]
    history.close_open_calls()
    (call,) = tool_calls(history.message_history)
    assert (call.outcome, call.ended_at) == ("interrupted", WHEN)


def test_calls_that_a_provider_made_and_arguments_that_are_no_json_are_told_too() -> None:
    native = NativeToolCallPart("web", {"q": "bees"}, tool_call_id="n")
    found = NativeToolReturnPart("web", "found", tool_call_id="n", timestamp=LATER)
    bad = ToolCallPart("look", "{", tool_call_id="c")
    again = ToolReturnPart("look", "no JSON", tool_call_id="c", timestamp=LATER, outcome="retried")
    web, look = tool_calls([said(native, found, bad), ModelRequest(parts=[again])])
    assert web == ToolCallRecord("n", "web", {"q": "bees"}, WHEN, "success", "found", LATER)
    assert look == ToolCallRecord("c", "look", "{", WHEN, "retried", "no JSON", LATER)


def test_a_return_without_a_call_is_none() -> None:
    assert tool_calls([ModelRequest(parts=[ToolReturnPart("look", "seen", tool_call_id="x")])]) == []
