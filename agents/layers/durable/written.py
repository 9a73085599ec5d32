"""How the session of layers is written in the session of a task.

    {"format": "dagbok.layers", "v": 1, "graph": digest, "order": [name, …],
     "layers": {name: {"type", "lifecycle", "state", "state_version", "cleanly"}}}

The members of layers are those of snapshots (`snapshots/schema.py`); a version that is left out is 1, `cleanly` is
true, an order that is left out is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeGuard

import msgspec

from dagbok.agents.layers.kept_state import UnreadLists
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.snapshots.found import FoundLayer, FoundLayers
from dagbok.agents.layers.snapshots.schema import LayerSnapshot, Snapshot, new_snapshot_id
from dagbok.events.codes import Code
from dagbok.events.errors import Refused

FORMAT: Final = "dagbok.layers"
VERSION: Final = 1
ADVICE: Final = "go on with, or look at, a session that a layered worker has put down, as it was put down"


def written_layer(
    kind: str, version: int, lifecycle: str, state: Mapping[str, Any], *, cleanly: bool = True
) -> dict[str, Any]:
    """A layer in a session."""
    layer: dict[str, Any] = {"type": kind, "lifecycle": lifecycle, "state": state}
    if version != 1:
        layer["state_version"] = version
    if not cleanly:
        layer["cleanly"] = False
    return layer


def as_written(layer: LayerSnapshot) -> dict[str, Any]:
    """A layer of a snapshot, in a session."""
    kind, version = layer.type or "", layer.state_version
    return written_layer(kind, version, layer.lifecycle, layer.state, cleanly=layer.cleanly)


def is_of_layers(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether the value of a session is of layers, and of this version."""
    return isinstance(value, Mapping) and value.get("format") == FORMAT and value.get("v") == VERSION


class _Layer(msgspec.Struct):
    type: str
    lifecycle: Literal["new", "suspended", "closed"]
    state: dict[str, Any]
    state_version: Annotated[int, msgspec.Meta(ge=1)] = 1
    cleanly: bool = True


class _Session(msgspec.Struct):
    layers: dict[str, _Layer]
    order: list[str] | None = None
    graph: str | None = None


def problem_of(value: Mapping[str, Any]) -> str | None:
    """What is wrong with the form of a session of layers; states are their layers' own."""
    try:
        found = msgspec.convert(value, _Session)
    except msgspec.ValidationError as malformed:
        return str(malformed)
    if found.order is not None and (len(set(found.order)) < len(found.order) or found.layers.keys() - {*found.order}):
        return "its order does not have each layer once"
    return None


def layers_of_session(value: object, unread: Mapping[str, UnreadLists] | None = None) -> FoundLayers:
    """What a compositor resumes from. A layer that was deleted is created anew. `unread`: growing lists by layer that
    the value leaves out.

    Raises `Refused` (`unsupported`) for what is no session of layers, or of a later version, or damaged."""
    if not is_of_layers(value):
        named = value if isinstance(value, Mapping) else {}
        said = f"the session of this task is {named.get('format')!r} version {named.get('v')!r}, not of layers as here"
        raise Refused(Code.UNSUPPORTED, said, advice=ADVICE)
    wrong = problem_of(value)
    if wrong is not None:
        raise Refused(Code.UNSUPPORTED, f"the session of layers is damaged: {wrong}", advice=ADVICE)
    layers, order = value["layers"], value.get("order")
    names = layers if order is None else [name for name in order if name in layers]
    found = tuple(_layer(name, layers[name], (unread or {}).get(name)) for name in names)
    return FoundLayers(found, in_order=order is not None, graph=value.get("graph"))


def session_snapshot(value: object, digest: str | None = None) -> Snapshot:
    """The layers in a session of a task (`Dagbok.session`) as a snapshot, to look at, to `diff` or to `dispose` of.

    `digest` is that of the session: with it the snapshot has the same id each time, and a compositor goes on with it
    once. Raises `Refused` (`unsupported`) for what is no session of layers, or of a later version."""
    found = layers_of_session(value)
    layers = tuple(each.snapshot(each.cleanly) for each in found.layers)
    return Snapshot(id=digest or new_snapshot_id(), graph=found.graph, in_order=found.in_order, layers=layers)


def _layer(name: str, written: Mapping[str, Any], unread: UnreadLists | None) -> FoundLayer:
    closed = written["lifecycle"] == LifecycleState.CLOSED
    return FoundLayer(
        name=name,
        type=written["type"],
        state_version=written.get("state_version", 1),
        lifecycle=LifecycleState.NEW if closed else LifecycleState(written["lifecycle"]),
        state={} if closed else written["state"],
        cleanly=written.get("cleanly", True),
        unread=unread,
    )
