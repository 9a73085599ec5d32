"""Layers for agents of Pydantic AI (extra `pydantic-ai`; docs/agents.md, "Layers with Pydantic AI")."""

from dagbok.events.extras import install

try:
    import pydantic_ai as _needed  # noqa: F401
except ModuleNotFoundError as missing:
    told = f"these layers need Pydantic AI; {install('pydantic-ai')}"
    raise ModuleNotFoundError(told, name=missing.name) from missing

from dagbok.agents.layers.pydantic_ai.bridge import PydanticAIBridgeDeps, PydanticAIBridgeLayer
from dagbok.agents.layers.pydantic_ai.calls import ToolCallRecord, tool_calls, tool_calls_of
from dagbok.agents.layers.pydantic_ai.history import (
    PYDANTIC_AI_HISTORY_LAYER_TYPE_ID,
    PydanticAIHistoryConfig,
    PydanticAIHistoryLayer,
    PydanticAIHistoryState,
)
from dagbok.agents.layers.pydantic_ai.importing import import_snapshot
from dagbok.agents.layers.pydantic_ai.output import (
    PYDANTIC_AI_OUTPUT_LAYER_TYPE_ID,
    PydanticAIOutputConfig,
    PydanticAIOutputLayer,
)
from dagbok.agents.layers.pydantic_ai.steps import keep_steps
from dagbok.agents.layers.pydantic_ai.transformers import PYDANTIC_AI_TRANSFORMERS
from dagbok.agents.layers.pydantic_ai.window import estimated_tokens

__all__ = [
    "PYDANTIC_AI_HISTORY_LAYER_TYPE_ID",
    "PYDANTIC_AI_OUTPUT_LAYER_TYPE_ID",
    "PYDANTIC_AI_TRANSFORMERS",
    "PydanticAIBridgeDeps",
    "PydanticAIBridgeLayer",
    "PydanticAIHistoryConfig",
    "PydanticAIHistoryLayer",
    "PydanticAIHistoryState",
    "PydanticAIOutputConfig",
    "PydanticAIOutputLayer",
    "ToolCallRecord",
    "estimated_tokens",
    "import_snapshot",
    "keep_steps",
    "tool_calls",
    "tool_calls_of",
]
