"""Families of layers: which library their prompts and tools are for."""

from __future__ import annotations

from typing import Generic, final

from dagbok.agents.layers.layer import ConfigT, DepsT, Layer, RuntimeStateT
from dagbok.agents.layers.tags import (
    AgentDepsT,
    PlainPrompt,
    PlainPromptType,
    PlainTool,
    PlainToolType,
    PlainUserPrompt,
    PlainUserPromptType,
    PydanticAIPrompt,
    PydanticAIPromptType,
    PydanticAITool,
    PydanticAIToolType,
    PydanticAIUserPrompt,
    PydanticAIUserPromptType,
)


class PlainLayer(
    Layer[DepsT, PlainPrompt, PlainUserPrompt, PlainTool, ConfigT, RuntimeStateT],
    Generic[DepsT, ConfigT, RuntimeStateT],
):
    """A layer of texts and functions."""

    @final
    def wrap_prompt(self, prompt: PlainPrompt) -> PlainPromptType:
        return PlainPromptType(prompt)

    @final
    def wrap_user_prompt(self, prompt: PlainUserPrompt) -> PlainUserPromptType:
        return PlainUserPromptType(prompt)

    @final
    def wrap_tool(self, tool: PlainTool) -> PlainToolType:
        return PlainToolType(tool)


class PydanticAILayer(
    Layer[
        DepsT,
        "PydanticAIPrompt[AgentDepsT]",
        "PydanticAIUserPrompt",
        "PydanticAITool[AgentDepsT]",
        ConfigT,
        RuntimeStateT,
    ],
    Generic[DepsT, AgentDepsT, ConfigT, RuntimeStateT],
):
    """A layer of prompts and tools of Pydantic AI, which it does not import."""

    @final
    def wrap_prompt(self, prompt: PydanticAIPrompt[AgentDepsT]) -> PydanticAIPromptType[AgentDepsT]:
        return PydanticAIPromptType(prompt)

    @final
    def wrap_user_prompt(self, prompt: PydanticAIUserPrompt) -> PydanticAIUserPromptType:
        return PydanticAIUserPromptType(prompt)

    @final
    def wrap_tool(self, tool: PydanticAITool[AgentDepsT]) -> PydanticAIToolType[AgentDepsT]:
        return PydanticAIToolType(tool)
