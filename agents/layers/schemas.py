"""What is written: graph configs and snapshots (version 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from dagbok.agents.layers.lifecycle import LifecycleState, never_active

_STRICT = ConfigDict(extra="forbid", revalidate_instances="always")


class LayerNodeConfig(BaseModel):
    """One node of a graph: its name, the type id of its layer, node names by dependency, and free metadata."""

    model_config = _STRICT

    name: str
    type: str
    deps: dict[str, str] = Field(default_factory=dict)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class CompositorConfig(BaseModel):
    """A graph: its nodes in order. A dependency points at an earlier node."""

    model_config = _STRICT

    schema_version: int = 1
    layers: list[LayerNodeConfig] = Field(default_factory=list)


class LayerSessionSnapshot(BaseModel):
    """One layer between two runs: its state as JSON."""

    model_config = _STRICT

    name: str
    lifecycle_state: LifecycleState
    runtime_state: dict[str, JsonValue]

    @field_validator("lifecycle_state")
    @classmethod
    def _never_active(cls, state: LifecycleState) -> LifecycleState:
        return never_active(state)


class CompositorSessionSnapshot(BaseModel):
    """All layers of a compositor between two runs, in the order of the graph: version 1 (`snapshots/` has the own)."""

    model_config = _STRICT

    schema_version: int = 1
    layers: list[LayerSessionSnapshot] = Field(default_factory=list)


CompositorConfigValue: TypeAlias = CompositorConfig | Mapping[str, object] | str | bytes
CompositorSessionSnapshotValue: TypeAlias = CompositorSessionSnapshot | Mapping[str, object] | str | bytes

ModelT = TypeVar("ModelT", CompositorConfig, CompositorSessionSnapshot)


def read_versioned(model: type[ModelT], value: Any) -> ModelT:
    """A config or snapshot from itself, a mapping, or JSON text.

    Raises:
        pydantic.ValidationError: It is malformed, or has a field too many.
        ValueError: Its `schema_version` is not 1.
    """
    found = model.model_validate_json(value) if isinstance(value, str | bytes) else model.model_validate(value)
    if found.schema_version != 1:
        raise ValueError(f"{model.__name__}.schema_version must be 1, got {found.schema_version}")
    return found
