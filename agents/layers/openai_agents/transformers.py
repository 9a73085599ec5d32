"""From plain items to what an agent of the OpenAI Agents SDK takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from agents import (  # noqa: TID251 - the SDK is called so
    FunctionTool,
    ModelBehaviorError,
    RunContextWrapper,
    UserError,
    function_tool,
)
from agents.tool_context import ToolContext  # noqa: TID251

from dagbok.agents.layers.described import parameters_of
from dagbok.agents.layers.tags import (
    AllPromptTypes,
    AllToolTypes,
    AllUserPromptTypes,
    PlainPromptType,
    PlainTool,
    PlainToolType,
    PlainUserPromptType,
)
from dagbok.agents.layers.transformers import CompositorTransformerKwargs


def prompts(items: Sequence[AllPromptTypes]) -> list[str]:
    """Texts, in their order. NotImplementedError for a prompt of another library."""
    return [item.value if isinstance(item, PlainPromptType) else _refuse(item.kind) for item in items]


def user_prompts(items: Sequence[AllUserPromptTypes]) -> list[str]:
    """Texts, in their order. NotImplementedError for a prompt of another library."""
    return [item.value if isinstance(item, PlainUserPromptType) else _refuse(item.kind) for item in items]


def tools(items: Sequence[AllToolTypes]) -> list[FunctionTool]:
    """Tools, in their order. Arguments that fit none are told to the model; what a tool raises ends the run, as
    `UserError` where the SDK says so. NotImplementedError for a tool of another library."""
    return [_tool(item.value) if isinstance(item, PlainToolType) else _refuse(item.kind) for item in items]


OPENAI_AGENTS_TRANSFORMERS: Final[CompositorTransformerKwargs] = {
    "prompt_transformer": prompts,
    "user_prompt_transformer": user_prompts,
    "tool_transformer": tools,
}
"""For `Compositor(nodes, **OPENAI_AGENTS_TRANSFORMERS)`: its runs give what `agent_of` and `input_of` take."""


def _tool(function: PlainTool) -> FunctionTool:
    parameters = parameters_of(function)
    if parameters is not None:
        return _described(function, parameters)
    try:
        return function_tool(function, failure_error_function=_told)
    except UserError:  # its arguments have no strict schema: a dict, a default that is no constant
        return function_tool(function, failure_error_function=_told, strict_mode=False)


def _described(function: PlainTool, parameters: dict[str, Any]) -> FunctionTool:
    async def invoke(context: ToolContext[Any], given: str) -> Any:
        try:
            arguments = json.loads(given or "{}")
        except ValueError as malformed:
            return f"The arguments are no JSON: {malformed}"
        if not isinstance(arguments, dict):
            return "The arguments are no JSON object"
        return await function(**arguments)

    return FunctionTool(
        name=function.__name__,
        description=function.__doc__ or "",
        params_json_schema=parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _told(context: RunContextWrapper[Any], error: Exception) -> str:
    if isinstance(error, ModelBehaviorError):
        return f"The arguments do not fit: {error}"
    raise error


def _refuse(kind: str) -> Any:
    raise NotImplementedError(f"An agent of the OpenAI Agents SDK takes no {kind} items")
