"""Tool calls that a stop left open: the next message works, and the model is told what became of them."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok.agents.layers.interrupted import INTERRUPTED
from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryConfig, PydanticAIHistoryLayer, keep_steps


def history_of(*messages: ModelMessage) -> PydanticAIHistoryLayer:
    layer = PydanticAIHistoryLayer()
    layer.config = PydanticAIHistoryConfig()
    layer.append_messages(messages)
    return layer


def asked(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def calls(*ids: str) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id=each) for each in ids])


def returned(*ids: str) -> ModelRequest:
    return ModelRequest(parts=[ToolReturnPart("look", "seen", tool_call_id=each) for each in ids])


def outcomes(messages: list[ModelMessage]) -> dict[str, str]:
    parts = [part for message in messages for part in message.parts]
    return {part.tool_call_id: part.outcome for part in parts if isinstance(part, ToolReturnPart)}


def says_what_it_saw(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Calls its tool when it is asked to, else tells how its calls ended."""
    last = messages[-1].parts[-1]
    if isinstance(last, UserPromptPart) and last.content == "look":
        return calls("c1", "c2")
    return ModelResponse(parts=[TextPart(str(sorted(outcomes(messages).items())))])


async def stopped_in_a_tool() -> PydanticAIHistoryLayer:
    """A history whose last run was cancelled while its tool ran."""
    history, running = history_of(), asyncio.Event()

    async def look() -> str:
        running.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> None:
        agent = Agent(FunctionModel(says_what_it_saw), tools=[look])
        async with agent.iter("look", message_history=history.for_next_run()) as steps:
            await keep_steps(steps, history)

    work = asyncio.ensure_future(run())
    await running.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    return history


async def test_the_next_message_works_behind_a_stop_during_a_tool_call() -> None:
    history = await stopped_in_a_tool()
    agent = Agent(FunctionModel(says_what_it_saw))
    with pytest.raises(UserError, match="unprocessed tool calls"):
        await agent.run("and now?", message_history=history.message_history)
    result = await agent.run("and now?", message_history=history.for_next_run())
    assert result.output == "[('c1', 'interrupted'), ('c2', 'interrupted')]"
    history.append_messages(result.new_messages())
    again = await agent.run("still?", message_history=history.for_next_run())
    assert again.output == result.output
    assert [type(part).__name__ for message in history.message_history for part in message.parts] == [
        *("UserPromptPart", "ToolCallPart", "ToolCallPart", "ToolReturnPart", "ToolReturnPart"),
        *("UserPromptPart", "TextPart"),
    ]


def test_only_what_is_open_is_closed_and_only_once() -> None:
    history = history_of(asked("x"), calls("a", "b"), returned("a"))
    assert outcomes(history.for_next_run()) == {"a": "success", "b": "interrupted"}
    assert history.close_open_calls() is False
    closing = history.message_history[-1].parts
    assert [part.content for part in closing if isinstance(part, ToolReturnPart)] == [INTERRUPTED]
    assert len(history.message_history) == 4


def test_a_history_without_open_calls_is_left_alone() -> None:
    history = history_of(asked("x"), calls("a"), returned("a"))
    before = history.message_history
    assert history.for_next_run() == before == history.message_history


def test_looking_at_the_history_closes_nothing() -> None:
    """A call that waits for a person is answered later, with the history as it is."""
    history = history_of(asked("x"), calls("a"))
    assert outcomes(history.message_history) == {}


def test_the_same_history_is_closed_the_same_way() -> None:
    open_ended: list[ModelMessage] = [asked("x"), calls("a")]
    first, second = history_of(*open_ended), history_of(*open_ended)
    returns = [history.for_next_run()[-1].parts for history in (first, second)]
    assert returns[0] == returns[1]


def test_a_call_that_was_left_open_long_ago_is_closed_where_it_is() -> None:
    history = history_of(asked("x"), calls("a", "b"), returned("b"), asked("y"), calls("c"), returned("c"))
    given = history.for_next_run()
    assert outcomes(given) == {"a": "interrupted", "b": "success", "c": "success"}
    assert outcomes(given[:3]) == {"a": "interrupted"}, "right behind its response"
