"""A model of the OpenAI Agents SDK that answers by a function: no network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from agents import Model, ModelResponse, Tool, Usage  # noqa: TID251 - the SDK is called so
from agents.items import TResponseStreamEvent  # noqa: TID251
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


@dataclass(frozen=True)
class Asked:
    """What the model is sent: instructions, the items in the form of the Responses API, and the tools."""

    instructions: str | None
    items: list[dict[str, Any]]
    tools: list[Tool]

    @property
    def said(self) -> list[str]:
        """What the user has said, oldest first."""
        return [item["content"] for item in self.items if item.get("role") == "user"]

    @property
    def returned(self) -> list[str]:
        """What calls have returned, oldest first."""
        return [item["output"] for item in self.items if item.get("type") == "function_call_output"]


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    arguments: dict[str, Any]


Answer = Callable[[Asked], str | Call]


class AnsweringModel(Model):
    """Says what `answer` says; a call gets an id of its own."""

    def __init__(self, answer: Answer) -> None:
        self._answer, self._ids = answer, count()

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: Any,
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        answer = self._answer(Asked(system_instructions, items, tools))
        return ModelResponse(output=[self._output(answer)], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError

    def _output(self, answer: str | Call) -> ResponseOutputMessage | ResponseFunctionToolCall:
        number = f"{id(self):x}-{next(self._ids)}"
        if isinstance(answer, Call):
            arguments = json.dumps(answer.arguments)
            return ResponseFunctionToolCall(
                name=answer.name, arguments=arguments, call_id=f"call-{number}", type="function_call"
            )
        text = ResponseOutputText(text=answer, annotations=[], type="output_text")
        return ResponseOutputMessage(
            id=f"m-{number}", content=[text], role="assistant", status="completed", type="message"
        )
