"""How the session of layers is written in the session of a task.

    {"format": "dagbok.layers", "v": 1, "graph": digest, "order": [name, …],
     "layers": {name: {"type", "lifecycle", "state", "state_version"}}}

`type`, `graph` and `state_version` are those of snapshots (`snapshots/schema.py`); a version that is left out is 1, an
order that is left out is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.snapshots.found import FoundLayer, FoundLayers
from dagbok.agents.layers.snapshots.schema import Snapshot, new_snapshot_id
from dagbok.events.codes import Code
from dagbok.events.errors import Refused

FORMAT: Final = "dagbok.layers"
VERSION: Final = 1


def written_layer(kind: str, version: int, lifecycle: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """A layer in a session."""
    layer: dict[str, Any] = {"type": kind, "lifecycle": lifecycle, "state": state}
    return layer if version == 1 else {**layer, "state_version": version}


def layers_of_session(value: Mapping[str, Any]) -> FoundLayers:
    """What a compositor resumes from. A layer that was deleted is created anew.

    Raises `Refused` (`unsupported`) for what is no session of layers, or of a later version."""
    if value.get("format") != FORMAT or value.get("v") != VERSION:
        said = f"the session of this task is {value.get('format')!r} version {value.get('v')!r}, not of layers as here"
        raise Refused(Code.UNSUPPORTED, said)
    layers, order = value["layers"], value.get("order")
    names = layers if order is None else [name for name in order if name in layers]
    found = tuple(_layer(name, layers[name]) for name in names)
    return FoundLayers(found, in_order=order is not None, graph=value.get("graph"))


def session_snapshot(value: Mapping[str, Any], digest: str | None = None) -> Snapshot:
    """The layers in a session of a task (`Dagbok.session`) as a snapshot, to look at, to `diff` or to `dispose` of.

    `digest` is that of the session: with it the snapshot has the same id each time, and a compositor goes on with it
    once. Raises `Refused` (`unsupported`) for what is no session of layers, or of a later version."""
    found = layers_of_session(value)
    layers = tuple(each.snapshot(each.cleanly) for each in found.layers)
    return Snapshot(id=digest or new_snapshot_id(), graph=found.graph, in_order=found.in_order, layers=layers)


def _layer(name: str, written: Mapping[str, Any]) -> FoundLayer:
    closed = written["lifecycle"] == LifecycleState.CLOSED
    return FoundLayer(
        name=name,
        type=written["type"],
        state_version=written.get("state_version", 1),
        lifecycle=LifecycleState.NEW if closed else LifecycleState(written["lifecycle"]),
        state={} if closed else written["state"],
    )
