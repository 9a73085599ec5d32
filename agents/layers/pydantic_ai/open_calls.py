"""Tool calls that nobody answered: a stop left them open, and a provider takes no further message behind them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    ToolCallPart,
    ToolReturnPart,
)

from dagbok.agents.layers.interrupted import INTERRUPTED


def answered_by(message: ModelMessage) -> set[str]:
    """Ids of the calls that a message answers, be it by asking for another try."""
    if not isinstance(message, ModelRequest):
        return set()
    return {
        part.tool_call_id
        for part in message.parts
        if isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name)
    }


def open_at_end(messages: Sequence[ModelMessage]) -> ModelRequest | None:
    """Closes the calls of the last response that nothing behind it answers; None when there are none."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, ModelResponse):
            return _closing(message, messages[index + 1 :])
    return None


def closed(messages: Sequence[ModelMessage], tool_names: Collection[str] | None = None) -> list[ModelMessage]:
    """The messages with every open call answered, right behind the response that it is of; with `tool_names`, only
    calls of these tools."""
    found: list[ModelMessage] = []
    for index, message in enumerate(messages):
        found.append(message)
        if isinstance(message, ModelResponse) and any(isinstance(part, ToolCallPart) for part in message.parts):
            behind = takewhile(lambda each: isinstance(each, ModelRequest), messages[index + 1 :])
            closing = _closing(message, list(behind), tool_names)
            found += [closing] if closing is not None else []
    return found


def _closing(
    response: ModelResponse, behind: Sequence[ModelMessage], tool_names: Collection[str] | None = None
) -> ModelRequest | None:
    answered = {call for message in behind for call in answered_by(message)}
    calls = [part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_call_id not in answered]
    if tool_names is not None:
        calls = [part for part in calls if part.tool_name in tool_names]
    return ModelRequest(parts=[_interrupted(call, response) for call in calls]) if calls else None


def _interrupted(call: ToolCallPart, response: ModelResponse) -> ToolReturnPart:
    """Of the response's time: the same history is closed the same way, wherever and whenever it is."""
    return ToolReturnPart(
        tool_name=call.tool_name,
        content=INTERRUPTED,
        tool_call_id=call.tool_call_id,
        timestamp=response.timestamp,
        outcome="interrupted",
    )
