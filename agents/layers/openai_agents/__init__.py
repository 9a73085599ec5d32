"""Layers for agents of the OpenAI Agents SDK (extra `openai-agents`; docs/layers.md, "With the OpenAI Agents SDK")."""

from dagbok.events.extras import install

try:
    from agents import Runner as _needed  # noqa: F401, TID251 - the SDK is called so
except ImportError as missing:
    told = f"these layers need the OpenAI Agents SDK; {install('openai-agents')}"
    raise ModuleNotFoundError(told, name="agents") from missing

from dagbok.agents.layers.openai_agents.agent import agent_of, input_of
from dagbok.agents.layers.openai_agents.session import (
    OPENAI_AGENTS_SESSION_LAYER_TYPE_ID,
    LayerSession,
    OpenAIAgentsSessionConfig,
    OpenAIAgentsSessionLayer,
    OpenAIAgentsSessionState,
)
from dagbok.agents.layers.openai_agents.transformers import OPENAI_AGENTS_TRANSFORMERS

__all__ = [
    "OPENAI_AGENTS_SESSION_LAYER_TYPE_ID",
    "OPENAI_AGENTS_TRANSFORMERS",
    "LayerSession",
    "OpenAIAgentsSessionConfig",
    "OpenAIAgentsSessionLayer",
    "OpenAIAgentsSessionState",
    "agent_of",
    "input_of",
]
