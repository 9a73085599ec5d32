"""A node of the graph: a name, what makes its layer, and which nodes it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import JsonValue

from dagbok.agents.layers.node_context import NodeContext
from dagbok.agents.layers.provider import LayerProvider, LayerProviderInput, as_provider

NAMELESS: Final = "Layer node name must not be empty"


class LayerNode:
    """One place in a compositor. It cannot be changed, and later changes of what it was made from do not reach it."""

    __slots__ = ("context", "declared_type", "deps", "name", "provider")

    name: str
    provider: LayerProvider[Any]
    deps: Mapping[str, str]
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
            raise ValueError(NAMELESS)
        for field, value in (
            ("name", name),
            ("provider", as_provider(implementation)),
            ("deps", MappingProxyType(dict(deps or {}))),
            ("context", NodeContext(name, metadata or {})),
            ("declared_type", declared_type),
        ):
            object.__setattr__(self, field, value)

    @property
    def metadata(self) -> dict[str, JsonValue]:
        """What the graph says of it beside: plain JSON, a copy for each reader."""
        return self.context.metadata

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"LayerNode cannot be changed: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"LayerNode cannot be changed: {name}")

    def __repr__(self) -> str:
        deps = f", deps={dict(self.deps)}" if self.deps else ""
        return f"LayerNode({self.name!r}, {self.provider.layer_type.__name__}{deps})"
