"""What of a long history is sent: its newest part, behind what must never be cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, UserPromptPart

from dagbok.agents.layers.pydantic_ai.open_calls import answered_by

TokenCounter: TypeAlias = Callable[[ModelMessage], int]
BYTES_PER_TOKEN = 4
_MESSAGE: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)


def size_bytes(message: ModelMessage) -> int:
    """The parts of a message as JSON, in bytes."""
    return len(_MESSAGE.dump_json(message, include={"parts"}))


def estimated_tokens(message: ModelMessage) -> int:
    """A token for each four bytes of the parts as JSON: too many for English, about right for code."""
    return -(-size_bytes(message) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is sent at most. None is no bound."""

    max_messages: int | None = None
    max_tokens: int | None = None
    max_bytes: int | None = None
    keep_first_prompt: bool = True

    @property
    def is_open(self) -> bool:
        """Nothing is ever cut."""
        return self.max_messages is None and self.max_tokens is None and self.max_bytes is None


def windowed(messages: Sequence[ModelMessage], bounds: Bounds, count_tokens: TokenCounter) -> list[ModelMessage]:
    """The newest messages within the bounds, behind the system prompts and the first prompt of those that are cut.

    A tool call and its return stay together. The newest exchange is sent also when it is larger than the bounds. The
    bounds of tokens and bytes are on all that is sent, `max_messages` is on what stands behind the uncut head.
    """
    if bounds.is_open:
        return list(messages)
    prompted_at = _first_prompt(messages) if bounds.keep_first_prompt else None
    spending = _Spending(bounds, count_tokens, _head(messages, bounds.keep_first_prompt))
    start = _start(messages, spending, prompted_at)
    return [*_head(messages[:start], bounds.keep_first_prompt), *messages[start:]]


class _Spending:
    """What is left of the bounds, going back from the newest message."""

    def __init__(self, bounds: Bounds, count_tokens: TokenCounter, head: Sequence[ModelMessage]) -> None:
        self._bounds, self._count_tokens = bounds, count_tokens
        self._messages = self._tokens = self._bytes = 0
        for message in head:
            self.add(message)
        self._messages = 0

    def add(self, message: ModelMessage) -> None:
        self._messages += 1
        self._tokens += self._count_tokens(message) if self._bounds.max_tokens is not None else 0
        self._bytes += size_bytes(message) if self._bounds.max_bytes is not None else 0

    @property
    def is_over(self) -> bool:
        pairs = (
            (self._messages, self._bounds.max_messages),
            (self._tokens, self._bounds.max_tokens),
            (self._bytes, self._bounds.max_bytes),
        )
        return any(bound is not None and spent > bound for spent, bound in pairs)


def _start(messages: Sequence[ModelMessage], spending: _Spending, prompted_at: int | None) -> int:
    start: int | None = None
    answered: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        spending.add(message)
        if spending.is_over and start is not None:
            return start
        answered = set() if isinstance(message, ModelResponse) else answered | answered_by(message)
        # A conversation begins with its user: in front of a response something that was asked is needed.
        is_behind_prompt = prompted_at is not None and prompted_at < index
        if not answered and (is_behind_prompt or _has_prompt(message)):
            start = index
    return 0 if start is None or not spending.is_over else start


def _head(messages: Sequence[ModelMessage], keep_first_prompt: bool) -> list[ModelMessage]:
    """One request of what must not be cut."""
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    system = [part for request in requests for part in request.parts if isinstance(part, SystemPromptPart)]
    first = _first_prompt(requests) if keep_first_prompt else None
    asked = [] if first is None else [part for part in requests[first].parts if isinstance(part, UserPromptPart)]
    if not system and not asked:
        return []
    return [replace(requests[0], parts=[*system, *asked])]


def _first_prompt(messages: Sequence[ModelMessage]) -> int | None:
    return next((index for index, message in enumerate(messages) if _has_prompt(message)), None)


def _has_prompt(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)
