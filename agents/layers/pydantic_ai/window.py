"""What of a long history is sent: its newest part, behind what must never be cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, UserPromptPart

from dagbok.agents.layers.growing import Growing
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
    told = _Told(messages, bounds.keep_first_prompt)
    spending = _Spending(bounds, count_tokens, told.head(len(messages)))
    start = _start(messages, spending, told.prompted_at)
    return [*told.head(start), *messages[start:]]


class _Told:
    """What of the messages must not be cut. Looks at all of them once, at unread ones as JSON."""

    def __init__(self, messages: Sequence[ModelMessage], keep_first_prompt: bool) -> None:
        self._messages = messages
        self._system = [
            (at, part)
            for at, message in _having(messages, "system-prompt")
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, SystemPromptPart)
        ]
        self.prompted_at = _first_prompt(messages) if keep_first_prompt else None

    def head(self, end: int) -> list[ModelMessage]:
        """One request of what must not be cut of the messages up to `end`."""
        system = [part for at, part in self._system if at < end]
        has_prompt = self.prompted_at is not None and self.prompted_at < end
        prompt = self._messages[self.prompted_at].parts if self.prompted_at is not None and has_prompt else []
        asked = [part for part in prompt if isinstance(part, UserPromptPart)]
        return [replace(_first_request(self._messages), parts=[*system, *asked])] if system or asked else []


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


def _first_request(messages: Sequence[ModelMessage]) -> ModelRequest:
    return next(each for _, each in _having(messages, "request") if isinstance(each, ModelRequest))


def _first_prompt(messages: Sequence[ModelMessage]) -> int | None:
    return next((index for index, each in _having(messages, "user-prompt") if _has_prompt(each)), None)


def _having(messages: Sequence[ModelMessage], kind: str) -> Iterator[tuple[int, ModelMessage]]:
    """Messages that may have a part of a kind, with their places: unread ones that have none stay unread."""
    return messages.having(kind) if isinstance(messages, Growing) else iter(enumerate(messages))


def _has_prompt(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)
