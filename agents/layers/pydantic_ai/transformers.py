"""From plain and native items to what an agent of Pydantic AI takes."""

from __future__ import annotations

import re
from collections import Counter
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

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes as the name of a tool."""


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
    """Tools, in their order.

    Raises:
        ValueError: A name is given twice, or is none that every provider takes. All such names are told.
    """
    made = [Tool(item.value) if isinstance(item, PlainToolType) else item.value for item in items]
    counted = Counter(tool.name for tool in made)
    twice = [f"{name!r} is given {times} times" for name, times in counted.items() if times > 1]
    refused = [f"{name!r} is not 1 to 64 letters, digits, _ and -" for name in counted if not NAME.fullmatch(name)]
    if twice or refused:
        raise ValueError(f"Tools cannot be named so: {'; '.join(twice + refused)}")
    return made


PYDANTIC_AI_TRANSFORMERS: Final[CompositorTransformerKwargs] = {
    "prompt_transformer": prompts,
    "user_prompt_transformer": user_prompts,
    "tool_transformer": tools,
}
"""For `Compositor(nodes, **PYDANTIC_AI_TRANSFORMERS)`: its runs give what `Agent` and `Agent.run` take."""
