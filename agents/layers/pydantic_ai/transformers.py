"""From plain and native items to what an agent of Pydantic AI takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic_ai import Tool
from pydantic_ai.messages import UserContent
from pydantic_ai.tools import SystemPromptFunc

from dagbok.agents.layers.pydantic_ai.prompt_text import PromptText
from dagbok.agents.layers.tags import (
    AllPromptTypes,
    AllToolTypes,
    AllUserPromptTypes,
    PlainPromptType,
    PlainToolType,
)
from dagbok.agents.layers.transformers import CompositorTransformerKwargs


def prompts(items: Sequence[AllPromptTypes]) -> list[SystemPromptFunc[Any]]:
    """Prompt functions, in their order.

    Where all are texts they are also `str`, as `Agent(system_prompt=…)` takes them. Beside functions they are not: an
    agent puts what is a `str` before all functions.
    """
    made = [PromptText(item.value) if isinstance(item, PlainPromptType) else item.value for item in items]
    if all(isinstance(prompt, PromptText) for prompt in made):
        return made
    return [prompt.__call__ if isinstance(prompt, PromptText) else prompt for prompt in made]


def user_prompts(items: Sequence[AllUserPromptTypes]) -> list[UserContent]:
    """User content, as `Agent.run` takes it."""
    return [item.value for item in items]


def tools(items: Sequence[AllToolTypes]) -> list[Tool[Any]]:
    """Tools, in their order."""
    return [Tool(item.value) if isinstance(item, PlainToolType) else item.value for item in items]


PYDANTIC_AI_TRANSFORMERS: Final[CompositorTransformerKwargs] = {
    "prompt_transformer": prompts,
    "user_prompt_transformer": user_prompts,
    "tool_transformer": tools,
}
"""For `Compositor(nodes, **PYDANTIC_AI_TRANSFORMERS)`: its runs give what `Agent` and `Agent.run` take."""
