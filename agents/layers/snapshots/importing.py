"""Snapshots of Agenton (version 1, a list) and of what follows it (version 2, a map) as snapshots of the own format.

What they do not have stays unknown: the type of a layer (None: its name decides), in version 2 the order and whether a
layer was entered (it counts as suspended). States count as of version 1 of their layer unless the caller knows better.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import deepcopy
from typing import Any, Final, TypeAlias

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.schemas import CompositorSessionSnapshot
from dagbok.agents.layers.slot import StateJson
from dagbok.agents.layers.snapshots.reading import own_snapshot
from dagbok.agents.layers.snapshots.schema import LayerSnapshot, Snapshot

ASK_HUMAN: Final = "ask_human"
"""A layer of version 1 that no longer is one: waiting for a person is a state of the run."""
HISTORY: Final = "history"
"""The name that version 1 reserves for the layer with the messages."""

CloseCalls: TypeAlias = Callable[[StateJson], StateJson]
"""Takes the state of a history, and gives it with the calls of a tool that is no more marked as interrupted."""

ImportedValue: TypeAlias = CompositorSessionSnapshot | Snapshot | Mapping[str, object] | str | bytes


def import_snapshot(
    value: ImportedValue,
    *,
    close_calls: CloseCalls | None = None,
    histories: Collection[str] = (HISTORY,),
    removed: Collection[str] = (ASK_HUMAN,),
    state_versions: Mapping[str, int] | None = None,
) -> Snapshot:
    """Read a snapshot of version 1, 2 or the own format. What is given is not changed.

    A layer that was closed is one that was never entered: it starts with an empty state.

    Args:
        value: A mapping, JSON text, or a model.
        close_calls: See `CloseCalls`; `dagbok.agents.layers.pydantic_ai.import_snapshot` has one.
        histories: Names of the layers to which it is applied when a removed layer was there.
        removed: Names of layers that are no more: they are dropped.
        state_versions: By layer, where its state is of another version than 1.

    Raises:
        ValueError: A member too many, a malformed layer, two of one name, a lifecycle that a snapshot cannot have,
            another version (also pydantic's ValidationError); a history that may have an open call of a removed layer,
            and no `close_calls`.
    """
    own = own_snapshot(value)
    if own is not None:
        return own
    document = _document(value)
    version = document.get("schema_version", 1)
    if version not in (1, 2):
        raise ValueError(f"A snapshot of version {version!r} cannot be imported: 1 and 2 can")
    if document.keys() - {"schema_version", "layers"}:
        more = ", ".join(sorted(map(str, document.keys() - {"schema_version", "layers"})))
        raise ValueError(f"The snapshot has members that version {version} does not have: {more}")
    layers = _version_1(document) if version == 1 else _version_2(document.get("layers"))
    if any(name in removed for name, *_ in layers):
        layers = [
            (name, lifecycle, _closed(name, state, close_calls) if name in histories else state)
            for name, lifecycle, state in layers
            if name not in removed
        ]
    versions = state_versions or {}
    return Snapshot(in_order=version == 1, layers=tuple(_layer(*each, versions.get(each[0], 1)) for each in layers))


_Written = tuple[str, LifecycleState, StateJson]


def _version_1(document: Mapping[str, object]) -> list[_Written]:
    plain = CompositorSessionSnapshot.model_validate(document)
    return [
        (each.name, LifecycleState.NEW, {})
        if each.lifecycle_state is LifecycleState.CLOSED
        else (each.name, each.lifecycle_state, deepcopy(each.runtime_state))
        for each in plain.layers
    ]


def _version_2(layers: object) -> list[_Written]:
    if not isinstance(layers, Mapping):
        raise ValueError(f"The layers of version 2 are an object by name, not {type(layers).__name__}")
    wrong = [str(name) for name, state in layers.items() if not isinstance(name, str) or not isinstance(state, Mapping)]
    if wrong:
        raise ValueError(f"The state of a layer is an object: not that of {', '.join(wrong)}")
    return [(name, LifecycleState.SUSPENDED, deepcopy(dict(state))) for name, state in layers.items()]


def _layer(name: str, lifecycle: LifecycleState, state: StateJson, version: int) -> LayerSnapshot:
    return LayerSnapshot(name=name, type=None, state_version=version, lifecycle=lifecycle, state=state)


def _closed(name: str, state: StateJson, closing: CloseCalls | None) -> StateJson:
    if not state.get("messages"):
        return state
    if closing is None:
        raise ValueError(
            f"Layer '{name}' may have a call in its messages that waits for a layer which is no more: import it with "
            "dagbok.agents.layers.pydantic_ai.import_snapshot, or give close_calls"
        )
    return closing(state)


def _document(value: ImportedValue) -> Mapping[str, Any]:
    if isinstance(value, CompositorSessionSnapshot):
        return value.model_dump(mode="json")
    if isinstance(value, str | bytes):
        try:
            value = json.loads(value, object_pairs_hook=_unique)
        except RecursionError as deep:
            raise ValueError("The snapshot is nested too deeply") from deep
    if not isinstance(value, Mapping):
        raise ValueError(f"The snapshot is no JSON object, but {type(value).__name__}")
    return value


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, each in pairs:
        if name in found:
            raise ValueError(f"The snapshot has {name!r} twice")
        found[name] = each
    return found
