"""A layer that keeps a record of tool calls, for loops whose library keeps none."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import from_json, to_json

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.families import PlainLayer
from dagbok.agents.layers.growing import Growing
from dagbok.agents.layers.models import LayerConfig
from dagbok.agents.layers.tags import PlainTool
from dagbok.events.canonical import canonical
from dagbok.events.errors import InvalidInput

TOOL_CALLS_LAYER_TYPE_ID: Final = "dagbok.tool_calls"
SECRET: Final = "…"
"""Stands in the place of a secret."""


class ToolCallsConfig(LayerConfig):
    """How much is kept of each argument and output, in characters of JSON, and which arguments are never kept."""

    max_chars: int = Field(default=10_000, ge=1)
    secret_arguments: frozenset[str] = frozenset()


class BegunCall(BaseModel):
    """A call that was made: its arguments by name."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    input: dict[str, JsonValue]
    at: datetime


class EndedCall(BaseModel):
    """How a call ended: `call` is its place among those that were begun."""

    model_config = ConfigDict(extra="forbid")

    call: int
    output: JsonValue = None
    error: str | None = None
    at: datetime


class ToolCallsState(BaseModel):
    """Both lists only grow. A call without an end was cut, or is under way."""

    model_config = ConfigDict(extra="forbid")

    begun: Growing[BegunCall] = Field(default_factory=Growing)
    ended: Growing[EndedCall] = Field(default_factory=Growing)

    @property
    def calls(self) -> list[tuple[BegunCall, EndedCall | None]]:
        """Each call with its end, in the order in which they were made."""
        ends = {each.call: each for each in self.ended}
        return [(begun, ends.get(number)) for number, begun in enumerate(self.begun)]


class ToolCallsLayer(PlainLayer[NoLayerDeps, ToolCallsConfig, ToolCallsState]):
    """Records the calls of the functions that `recorded` gives: input, output or error, and both times.

    A call stands in the state before the function is called, so one that a crash cut is known, once it was put down.
    """

    type_id = TOOL_CALLS_LAYER_TYPE_ID

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()

    def recorded(self, tool: PlainTool) -> PlainTool:
        """The function with the same name, signature and result, each call of which is recorded. One that is not async
        may be called from several threads."""
        if inspect.iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def recorded_later(*args: Any, **kwargs: Any) -> Any:
                call = self._begin(tool, args, kwargs)
                try:
                    output = await tool(*args, **kwargs)
                except BaseException as error:
                    self._end(call, error=error)
                    raise
                self._end(call, output)
                return output

            return recorded_later

        @functools.wraps(tool)
        def recorded_now(*args: Any, **kwargs: Any) -> Any:
            call = self._begin(tool, args, kwargs)
            try:
                output = tool(*args, **kwargs)
            except BaseException as error:
                self._end(call, error=error)
                raise
            self._end(call, output)
            return output

        return recorded_now

    def _begin(self, tool: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        name, given = str(getattr(tool, "__name__", type(tool).__name__)), self._given(tool, args, kwargs)
        with self._one_at_a_time:
            self.runtime_state.begun.append(BegunCall(tool=_unicode(name), input=given, at=datetime.now(UTC)))
            return len(self.runtime_state.begun) - 1

    def _end(self, call: int, output: object = None, error: BaseException | None = None) -> None:
        said = None if error is None else self._shortened(f"{type(error).__name__}: {_told(str, error)}")
        ended = EndedCall(call=call, output=self._cut(output), error=said, at=datetime.now(UTC))
        with self._one_at_a_time:
            self.runtime_state.ended.append(ended)

    def _given(self, tool: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, JsonValue]:
        secret = self.config.secret_arguments
        given = _by_name(tool, args, kwargs)
        if given is None:  # The call raises, and that is recorded too. Nobody knows which of these is secret.
            given = {**{str(number): SECRET if secret else each for number, each in enumerate(args)}, **kwargs}
        return {_unicode(name): SECRET if name in secret else self._cut(value) for name, value in given.items()}

    def _cut(self, value: object) -> JsonValue:
        """The value as JSON, or the beginning of it as text; what is no JSON, or none that a session takes, stands as
        its text. Raises nothing: what can be kept of a call is no matter of the call."""
        try:
            text = to_json(_unread(value), fallback=repr, bytes_mode="base64", inf_nan_mode="strings").decode()
        except Exception:  # a circle, text that is no Unicode, no end of depth, an object that tells nothing
            return self._shortened(_told(repr, value))
        if text.startswith('"'):
            kept: str = orjson.loads(text)
            return self._shortened(kept)
        fits = len(text) <= self.config.max_chars and _is_kept(text)
        return orjson.loads(text) if fits else self._shortened(text)

    def _shortened(self, text: str) -> str:
        left_out = len(text) - self.config.max_chars
        kept = text if left_out <= 0 else f"{text[: self.config.max_chars]} … {left_out} characters left out"
        return _unicode(kept)


def _unread(value: object) -> object:
    """The value with the texts of iterators in their places: to look into one would take what it gives from whoever
    called the tool."""
    if isinstance(value, Iterator):
        return repr(value)
    if type(value) is dict:
        return {key: _unread(each) for key, each in value.items()}
    return [*map(_unread, value)] if type(value) in (list, tuple) else value  # type: ignore[call-overload]


def _is_kept(text: str) -> bool:
    """Whether a session takes this JSON, and the state is read from it again, where a value stands in a call."""
    try:
        from_json(f"[[[{text}]]]")
        canonical(orjson.loads(text))
    except (ValueError, InvalidInput):
        return False
    return True


def _told(how: Callable[[object], str], value: object) -> str:
    """What a value says of itself, which may fail as all that a tool brings."""
    try:
        return how(value)
    except Exception as failed:
        return f"<{type(value).__name__}, which cannot be told: {type(failed).__name__}>"


def _unicode(text: str) -> str:
    """The text with lone surrogates written out: no state that has one can be put down."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _by_name(tool: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by the names of the parameters; none when they do not fit."""
    try:
        signature = inspect.signature(tool)
        given = dict(signature.bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return None
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            given |= given.pop(parameter.name, {})
    return given
