"""From tagged items to what one library takes: a function over each whole list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict, TypeVar

FromT = TypeVar("FromT")
ToT = TypeVar("ToT")

CompositorTransformer: TypeAlias = Callable[[Sequence[FromT]], Sequence[ToT]]


class CompositorTransformerKwargs(TypedDict):
    """All transformers as keyword arguments: of `Compositor` and of `Compositor.from_config`."""

    prompt_transformer: CompositorTransformer[Any, Any] | None
    user_prompt_transformer: CompositorTransformer[Any, Any] | None
    tool_transformer: CompositorTransformer[Any, Any] | None


@dataclass(frozen=True, slots=True)
class Transformers:
    """One for each kind of item; where there is none, items stay tagged."""

    prompts: CompositorTransformer[Any, Any] | None = None
    user_prompts: CompositorTransformer[Any, Any] | None = None
    tools: CompositorTransformer[Any, Any] | None = None

    def of_prompts(self, items: list[Any]) -> list[Any]:
        """System prompts."""
        return items if self.prompts is None else list(self.prompts(items))

    def of_user_prompts(self, items: list[Any]) -> list[Any]:
        """User prompts."""
        return items if self.user_prompts is None else list(self.user_prompts(items))

    def of_tools(self, items: list[Any]) -> list[Any]:
        """Tools."""
        return items if self.tools is None else list(self.tools(items))
