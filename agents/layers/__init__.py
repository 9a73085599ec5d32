"""Agents composed of layers: the base of layers, the compositor, and plain layers (docs/layers.md).

Nothing here needs Pydantic AI.
"""

from dagbok.agents.layers.compositor import Compositor
from dagbok.agents.layers.deps import LayerDeps, NoLayerDeps
from dagbok.agents.layers.described import described_tool, parameters_of
from dagbok.agents.layers.dynamic_tools import DynamicToolsDeps, DynamicToolsLayer, with_object
from dagbok.agents.layers.failing import other_errors, own_snapshot_of, snapshot_of
from dagbok.agents.layers.families import PlainLayer, PydanticAILayer
from dagbok.agents.layers.growing import Growing
from dagbok.agents.layers.layer import Layer
from dagbok.agents.layers.lifecycle import ExitIntent, LifecycleState
from dagbok.agents.layers.models import (
    EmptyLayerConfig,
    EmptyRuntimeState,
    LayerConfig,
    LayerConfigInput,
    LayerConfigValue,
    StateMigrator,
)
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.node_context import NodeContext
from dagbok.agents.layers.object_layer import ObjectLayer
from dagbok.agents.layers.prompt_layer import PLAIN_PROMPT_LAYER_TYPE_ID, PromptLayer, PromptLayerConfig
from dagbok.agents.layers.provider import LayerFactory, LayerProvider, LayerProviderInput
from dagbok.agents.layers.run import CompositorRun
from dagbok.agents.layers.schemas import (
    CompositorConfig,
    CompositorConfigValue,
    CompositorSessionSnapshot,
    CompositorSessionSnapshotValue,
    LayerNodeConfig,
    LayerSessionSnapshot,
)
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.claims import ClaimsInMemory, SnapshotClaims
from dagbok.agents.layers.snapshots.diff import LayerDiff, LayerOutcome, SnapshotDiff
from dagbok.agents.layers.snapshots.importing import import_snapshot
from dagbok.agents.layers.snapshots.migrating import NoMigrator
from dagbok.agents.layers.snapshots.reading import read_snapshot
from dagbok.agents.layers.snapshots.rules import (
    LayerChange,
    ResumeAction,
    ResumePolicy,
    ResumeRules,
    SnapshotRefused,
    TypeMigrator,
)
from dagbok.agents.layers.snapshots.schema import LayerSnapshot, Snapshot
from dagbok.agents.layers.tags import (
    AllPromptTypes,
    AllToolTypes,
    AllUserPromptTypes,
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
from dagbok.agents.layers.tool_calls import (
    TOOL_CALLS_LAYER_TYPE_ID,
    BegunCall,
    EndedCall,
    ToolCallsConfig,
    ToolCallsLayer,
    ToolCallsState,
)
from dagbok.agents.layers.tools_layer import ToolsLayer
from dagbok.agents.layers.transformers import CompositorTransformer, CompositorTransformerKwargs

__all__ = [
    "PLAIN_PROMPT_LAYER_TYPE_ID",
    "TOOL_CALLS_LAYER_TYPE_ID",
    "AllPromptTypes",
    "AllToolTypes",
    "AllUserPromptTypes",
    "BegunCall",
    "ClaimsInMemory",
    "Compositor",
    "CompositorConfig",
    "CompositorConfigValue",
    "CompositorRun",
    "CompositorSessionSnapshot",
    "CompositorSessionSnapshotValue",
    "CompositorTransformer",
    "CompositorTransformerKwargs",
    "DynamicToolsDeps",
    "DynamicToolsLayer",
    "EmptyLayerConfig",
    "EmptyRuntimeState",
    "EndedCall",
    "ExitIntent",
    "Growing",
    "Layer",
    "LayerChange",
    "LayerConfig",
    "LayerConfigInput",
    "LayerConfigValue",
    "LayerDeps",
    "LayerDiff",
    "LayerFactory",
    "LayerNode",
    "LayerNodeConfig",
    "LayerOutcome",
    "LayerProvider",
    "LayerProviderInput",
    "LayerRunSlot",
    "LayerSessionSnapshot",
    "LayerSnapshot",
    "LifecycleState",
    "NoLayerDeps",
    "NoMigrator",
    "NodeContext",
    "ObjectLayer",
    "PlainLayer",
    "PlainPrompt",
    "PlainPromptType",
    "PlainTool",
    "PlainToolType",
    "PlainUserPrompt",
    "PlainUserPromptType",
    "PromptLayer",
    "PromptLayerConfig",
    "PydanticAILayer",
    "PydanticAIPrompt",
    "PydanticAIPromptType",
    "PydanticAITool",
    "PydanticAIToolType",
    "PydanticAIUserPrompt",
    "PydanticAIUserPromptType",
    "ResumeAction",
    "ResumePolicy",
    "ResumeRules",
    "Snapshot",
    "SnapshotClaims",
    "SnapshotDiff",
    "SnapshotRefused",
    "StateMigrator",
    "ToolCallsConfig",
    "ToolCallsLayer",
    "ToolCallsState",
    "ToolsLayer",
    "TypeMigrator",
    "described_tool",
    "import_snapshot",
    "other_errors",
    "own_snapshot_of",
    "parameters_of",
    "read_snapshot",
    "snapshot_of",
    "with_object",
]
