"""Every tool call of a conversation, with what it was given, what it gave and when: read from the messages themselves,
so that nothing is kept twice and no call is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
)
from pydantic_core import to_json

from dagbok.agents.layers.pydantic_ai.history import PYDANTIC_AI_HISTORY_LAYER_TYPE_ID, PydanticAIHistoryState


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """A call as the model made it, and how it ended. `ended_at` is when its return was made."""

    call_id: str
    tool: str
    input: JsonValue
    called_at: datetime
    outcome: Literal["open", "success", "failed", "denied", "interrupted", "retried"] = "open"
    """`open`: nobody answered it. `interrupted`: a stop cut it, and nobody knows how far it got. `retried`: the model
    was asked to call again."""
    output: object = None
    ended_at: datetime | None = None


def tool_calls(messages: Sequence[ModelMessage]) -> list[ToolCallRecord]:
    """The calls of a conversation, in the order in which the model made them."""
    found: list[ToolCallRecord] = []
    is_open: dict[str, int] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, BaseToolCallPart) and isinstance(message, ModelResponse):
                is_open[part.tool_call_id] = len(found)
                found.append(ToolCallRecord(part.tool_call_id, part.tool_name, _input(part), message.timestamp))
            elif isinstance(part, BaseToolReturnPart | RetryPromptPart) and part.tool_call_id in is_open:
                index = is_open.pop(part.tool_call_id)
                found[index] = _ended(found[index], part)
    return found


def tool_calls_of(session: Mapping[str, Any]) -> dict[str, list[ToolCallRecord]]:
    """The calls in the session of a layered worker (`(await dagbok.session(run, task)).value`), by the name of the
    history layer that has them. Raises pydantic's ValidationError for messages that this version cannot read."""
    return {
        name: tool_calls(PydanticAIHistoryState.model_validate_json(to_json(layer["state"])).messages)
        for name, layer in session["layers"].items()
        if layer["type"] == PYDANTIC_AI_HISTORY_LAYER_TYPE_ID
    }


def _input(part: BaseToolCallPart) -> JsonValue:
    """As JSON; as text where the model wrote none."""
    try:
        return part.args_as_dict(raise_if_invalid=True)
    except (AssertionError, ValueError):
        return part.args if isinstance(part.args, str) else None


def _ended(record: ToolCallRecord, part: BaseToolReturnPart | RetryPromptPart) -> ToolCallRecord:
    outcome = part.outcome if isinstance(part, BaseToolReturnPart) else "retried"
    return replace(record, outcome=outcome, output=part.content, ended_at=part.timestamp)
