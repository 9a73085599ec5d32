"""A node of the graph: a name, what makes its layer, and which nodes it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from pydantic import JsonValue

from dagbok.agents.layers.provider import LayerProvider, LayerProviderInput, NodeContext, as_provider


class LayerNode:
    """One place in a compositor. It cannot be changed, and later changes of what it was made from do not reach it."""

    __slots__ = ("context", "declared_type", "deps", "metadata", "name", "provider")

    name: str
    provider: LayerProvider[Any]
    deps: Mapping[str, str]
    metadata: Mapping[str, JsonValue]
    context: NodeContext
    declared_type: str | None
    """What the graph config calls the type of the layer: its identity in snapshots where the class has no type id."""

    def __init__(
        self,
        name: str,
        implementation: LayerProviderInput,
        *,
        deps: Mapping[str, str] | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        declared_type: str | None = None,
    ) -> None:
        """Take a layer class or a provider; `deps` has node names by dependency.

        Raises:
            ValueError: The name is empty.
            TypeError: `implementation` is neither a layer class nor a provider.
        """
        if not name:
            raise ValueError("Layer node name must not be empty")
        metadata = cast("Mapping[str, JsonValue]", _frozen(dict(metadata or {})))
        for field, value in (
            ("name", name),
            ("provider", as_provider(implementation)),
            ("deps", MappingProxyType(dict(deps or {}))),
            ("metadata", metadata),
            ("context", NodeContext(name, metadata)),
            ("declared_type", declared_type),
        ):
            object.__setattr__(self, field, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"LayerNode cannot be changed: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"LayerNode cannot be changed: {name}")

    def __repr__(self) -> str:
        deps = f", deps={dict(self.deps)}" if self.deps else ""
        return f"LayerNode({self.name!r}, {self.provider.layer_type.__name__}{deps})"


def _frozen(value: object) -> object:
    """JSON that cannot be changed: objects become read-only mappings, arrays tuples."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: _frozen(each) for key, each in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
