"""What a layer is told for one run (config), and what it keeps from one run to the next (state)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue, SerializeAsAny


class LayerConfig(BaseModel):
    """Base of configs: what a caller gives one layer for one run. Unknown fields are refused.

    An instance is validated again when it is used, so one that was changed to something invalid is refused too.
    """

    model_config = ConfigDict(extra="forbid", revalidate_instances="always")


class EmptyLayerConfig(LayerConfig):
    """The config of a layer that needs none."""


class EmptyRuntimeState(BaseModel):
    """The state of a layer that keeps nothing."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


LayerConfigValue: TypeAlias = JsonValue | SerializeAsAny[LayerConfig]
"""A config as JSON, or as a model; a subclass keeps its fields when it is serialised."""

LayerConfigInput: TypeAlias = LayerConfigValue | Mapping[str, object] | str | bytes | None
"""What is taken for a config: a value, a mapping, JSON text, or None for one with defaults."""

StateMigrator: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""From a state as JSON in one version to the next. Pure: it is handed a copy, and asks nothing but that. The values
are `Any`, as in the standard library: their shape is known to the author of the layer alone."""
