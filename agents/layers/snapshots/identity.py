"""By what a layer is known again: its name and the id of its type, wherever it stands in the graph."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.node import LayerNode
from dagbok.events.canonical import digest


def type_of(node: LayerNode) -> str:
    """What the type of a layer is written as: its type id, else what the graph config names it, else its class."""
    kind: type[AnyLayer] = node.provider.layer_type
    return kind.type_id or _names(node)[0]


def is_of_type(node: LayerNode, written: str | None) -> bool:
    """Whether a layer that was written with this type is of the type of the node. What was imported from a format
    without types (None) is."""
    return written is None or written == node.provider.layer_type.type_id or written in _names(node)


def state_version_of(node: LayerNode) -> int:
    """The version in which the layers of this node write their state."""
    kind: type[AnyLayer] = node.provider.layer_type
    return kind.state_version


def graph_digest(nodes: Sequence[LayerNode]) -> str:
    """Names a graph of layers: names, types and dependencies, in order. 64 hex digits."""
    return digest([[node.name, type_of(node), dict(node.deps)] for node in nodes])


def _names(node: LayerNode) -> tuple[str, ...]:
    kind = node.provider.layer_type
    return tuple(each for each in (kind.type_id, node.declared_type, kind.__qualname__) if each)
