"""Prompts and tools of Pydantic AI as they are, with the object that they run with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic_ai import Tool
from pydantic_ai.messages import UserContent
from pydantic_ai.tools import SystemPromptFunc

from dagbok.agents.layers.deps import LayerDeps
from dagbok.agents.layers.families import PydanticAILayer
from dagbok.agents.layers.object_layer import ObjectLayer
from dagbok.agents.layers.pydantic_ai.prompt_text import PromptText

T = TypeVar("T")

PromptEntry: TypeAlias = "str | SystemPromptFunc[T]"
ToolEntry: TypeAlias = "Tool[T] | Callable[..., Any]"


class PydanticAIBridgeDeps(LayerDeps, Generic[T]):
    """The object that prompts and tools run with."""

    object_layer: ObjectLayer[T]


class PydanticAIBridgeLayer(PydanticAILayer[PydanticAIBridgeDeps[T], T], Generic[T]):
    """Gives prompts and tools that may take a `RunContext[T]`; `run_deps` is the T to run the agent with.

    It is made by a factory. `prefix` and `suffix` are a text, a prompt function or several of these; `user` is user
    content or several; a function among `tool_entries` becomes a `Tool`, which takes the context when its first
    parameter is annotated with one. Raises what `Tool` raises for a function that it cannot describe.
    """

    def __init__(
        self,
        *,
        prefix: PromptEntry[T] | Sequence[PromptEntry[T]] = (),
        user: UserContent | Sequence[UserContent] = (),
        suffix: PromptEntry[T] | Sequence[PromptEntry[T]] = (),
        tool_entries: Sequence[ToolEntry[T]] = (),
    ) -> None:
        self._prefix, self._suffix = _prompts(prefix), _prompts(suffix)
        self._user: list[UserContent] = list(user) if _is_several(user) else [user]  # type: ignore[list-item, arg-type]
        self._tools: list[Tool[T]] = [each if isinstance(each, Tool) else Tool(each) for each in tool_entries]

    @property
    def run_deps(self) -> T:
        """What to give `Agent.run` as `deps`."""
        return self.deps.object_layer.value

    @property
    def prefix_prompts(self) -> Sequence[SystemPromptFunc[T]]:
        return list(self._prefix)

    @property
    def suffix_prompts(self) -> Sequence[SystemPromptFunc[T]]:
        return list(self._suffix)

    @property
    def user_prompts(self) -> Sequence[UserContent]:
        return list(self._user)

    @property
    def tools(self) -> Sequence[Tool[T]]:
        return list(self._tools)


def _prompts(given: PromptEntry[T] | Sequence[PromptEntry[T]]) -> list[SystemPromptFunc[T]]:
    several: Any = given if _is_several(given) else [given]
    return [PromptText(each) if isinstance(each, str) else each for each in several]


def _is_several(given: object) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)
