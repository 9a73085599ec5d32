"""The messages of a conversation as the state of a layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_core import from_json

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.families import PydanticAILayer
from dagbok.agents.layers.models import LayerConfig
from dagbok.agents.layers.pydantic_ai.messages import LIBRARY, StoredMessage
from dagbok.agents.layers.pydantic_ai.open_calls import closed, open_at_end
from dagbok.agents.layers.pydantic_ai.window import Bounds, TokenCounter, estimated_tokens, windowed

PYDANTIC_AI_HISTORY_LAYER_TYPE_ID: Final = "pydantic_ai.history"


class PydanticAIHistoryConfig(LayerConfig):
    """How much of the history `for_next_run` gives. None is no bound; the history itself is never shortened."""

    max_messages: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_bytes: int | None = Field(default=None, ge=1)
    keep_first_prompt: bool = True
    """The first prompt, which says what the agent is for, is kept in front of the newest messages."""


class PydanticAIHistoryState(BaseModel):
    """The messages, oldest first, and which version of Pydantic AI they were written with last."""

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    messages: list[StoredMessage] = Field(default_factory=list)
    library: str | None = None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **how: Any) -> Self:
        """The state that was written. A ValidationError has a note with both versions of the library."""
        try:
            return super().model_validate_json(json_data, **how)
        except ValidationError as unreadable:
            unreadable.add_note(
                f"The history was written with Pydantic AI {_library_of(json_data)}, and this process has {LIBRARY}"
            )
            raise


class PydanticAIHistoryLayer(PydanticAILayer[NoLayerDeps, Any, PydanticAIHistoryConfig, PydanticAIHistoryState]):
    """Keeps messages from run to run; it gives no prompts and no tools.

    Messages are copied on their way in and out, with the parts shared: do not change parts. Their `instructions` are
    left out: they are the prompts of a run that is over, and the next run has its own. `count_tokens` is what
    `max_tokens` of the config is counted with.
    """

    type_id = PYDANTIC_AI_HISTORY_LAYER_TYPE_ID
    growing: ClassVar[tuple[str, ...]] = ("messages",)

    def __init__(self, count_tokens: TokenCounter = estimated_tokens) -> None:
        self._count_tokens = count_tokens

    @property
    def message_history(self) -> list[ModelMessage]:
        """All messages as they are, calls that are open included: to answer calls that wait for a person."""
        return _copied(self.runtime_state.messages)

    def for_next_run(self) -> list[ModelMessage]:
        """What to give `Agent.run` as `message_history` beside a new prompt: within the bounds of the config, and
        with every call answered. Calls that a stop left open are closed in the history too, as interrupted."""
        self.close_open_calls()
        config = self.config
        bounds = Bounds(config.max_messages, config.max_tokens, config.max_bytes, config.keep_first_prompt)
        return closed(_copied(windowed(self.runtime_state.messages, bounds, self._count_tokens)))

    def close_open_calls(self) -> bool:
        """Answer the calls of the last response that nobody answered, as interrupted. False when there are none."""
        closing = open_at_end(self.runtime_state.messages)
        if closing is not None:
            self.append_messages([closing])
        return closing is not None

    def append_messages(self, messages: Iterable[ModelMessage]) -> None:
        """Put messages behind those that are there, such as `result.new_messages()`. TypeError for what is none."""
        self.runtime_state.messages.extend(_taken(messages))
        self.runtime_state.library = LIBRARY

    def replace_messages(self, messages: Iterable[ModelMessage]) -> None:
        """Put other messages in the place of all. TypeError for what is none."""
        self.runtime_state.messages = _taken(messages)
        self.runtime_state.library = LIBRARY

    def clear(self) -> None:
        """Forget all messages."""
        self.runtime_state.messages = []


def _copied(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    return [_copy(message) for message in messages]


def _taken(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    return [_one_taken(message) for message in messages]


def _one_taken(message: ModelMessage) -> ModelMessage:
    given: object = message
    if not isinstance(given, ModelRequest | ModelResponse):
        raise TypeError(f"A history holds messages of Pydantic AI, not {type(given).__name__}")
    copied = _copy(message)
    if isinstance(copied, ModelRequest):
        copied.instructions = None
    return copied


def _copy(message: ModelMessage) -> ModelMessage:
    if isinstance(message, ModelRequest):
        return replace(message, parts=list(message.parts))
    return replace(message, parts=list(message.parts))


def _library_of(written: str | bytes | bytearray) -> str:
    try:
        return str(from_json(written)["library"])
    except (KeyError, TypeError, ValueError):
        return "of an unknown version"
