"""How the session of layers is written in the session of a task.

    {"format": "dagbok.layers", "v": 1, "graph": digest, "layers": {name: {"type", "lifecycle", "state"}}}

`type` is the type id of the layer, else the name of its class; `graph` the digest of names, types and dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.schemas import CompositorSessionSnapshot, LayerSessionSnapshot
from dagbok.events.canonical import digest
from dagbok.events.codes import Code
from dagbok.events.errors import Refused

FORMAT: Final = "dagbok.layers"
VERSION: Final = 1


def type_of(node: LayerNode) -> str:
    """What a session names the type of a layer by."""
    kind = node.provider.layer_type
    return kind.type_id or kind.__qualname__


def graph_digest(nodes: Sequence[LayerNode]) -> str:
    """Names a graph of layers."""
    return digest([[node.name, type_of(node), dict(node.deps)] for node in nodes])


def snapshot_of_written(value: Mapping[str, Any], nodes: Sequence[LayerNode]) -> CompositorSessionSnapshot:
    """What a compositor with these nodes resumes from. A layer that was deleted is created anew.

    Raises `Refused`: `unsupported` for what a later version wrote, `config_mismatch` for a session of other layers."""
    if value.get("format") != FORMAT or value.get("v") != VERSION:
        said = f"the session of this task is {value.get('format')!r} version {value.get('v')!r}, not of layers as here"
        raise Refused(Code.UNSUPPORTED, said)
    layers = value["layers"]
    wanted = {node.name: type_of(node) for node in nodes}
    found = {name: layer["type"] for name, layer in layers.items()}
    if wanted != found:
        raise Refused(
            Code.CONFIG_MISMATCH,
            f"the session of this task is of other layers: {_difference(found, wanted)}",
            advice="bring back the layers that it was put down with, or let another task do the work",
        )
    return CompositorSessionSnapshot(layers=[_layer(node.name, layers[node.name]) for node in nodes])


def _layer(name: str, written: Mapping[str, Any]) -> LayerSessionSnapshot:
    if written["lifecycle"] == LifecycleState.CLOSED:
        return LayerSessionSnapshot(name=name, lifecycle_state=LifecycleState.NEW, runtime_state={})
    return LayerSessionSnapshot(name=name, lifecycle_state=written["lifecycle"], runtime_state=written["state"])


def _difference(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    said = [f"{name} is gone" for name in sorted(found.keys() - wanted.keys())]
    said += [f"{name} is new" for name in sorted(wanted.keys() - found.keys())]
    both = sorted(found.keys() & wanted.keys())
    said += [f"{name} is {wanted[name]}, was {found[name]}" for name in both if found[name] != wanted[name]]
    return ", ".join(said)
