"""What a snapshot says of its layers, of whichever accepted format it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from dagbok.agents.layers.kept_state import StateJson, UnreadLists, json_of
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.schemas import CompositorSessionSnapshot, CompositorSessionSnapshotValue, read_versioned
from dagbok.agents.layers.snapshots.reading import own_snapshot
from dagbok.agents.layers.snapshots.schema import LayerSnapshot, Snapshot


@dataclass(slots=True)
class FoundLayer:
    """One layer, as `LayerSnapshot` has it; made in a fraction of the time. Nobody changes it."""

    name: str
    type: str | None
    state_version: int
    lifecycle: LifecycleState
    state: StateJson
    cleanly: bool = True
    unread: UnreadLists | None = None
    """Growing lists that `state` leaves out, as the JSON of their items; only where the state needs no migrator."""

    def snapshot(self, cleanly: bool) -> LayerSnapshot:
        """As it is written."""
        return LayerSnapshot(
            name=self.name,
            type=self.type,
            state_version=self.state_version,
            lifecycle=self.lifecycle,
            cleanly=cleanly,
            state={**self.state, **{name: list(map(json_of, items)) for name, items in (self.unread or {}).items()}},
        )


@dataclass(frozen=True, slots=True)
class FoundLayers:
    """The layers, their order if it is known, and what else there is to know: none of it in version 1."""

    layers: tuple[FoundLayer, ...]
    in_order: bool = True
    graph: str | None = None
    id: str | None = None


AnySnapshotValue: TypeAlias = CompositorSessionSnapshotValue | Snapshot | FoundLayers
"""Of version 1, of the own format, or found elsewhere."""


def found_layers(value: AnySnapshotValue) -> FoundLayers:
    """Read a snapshot that is to be resumed.

    Raises:
        pydantic.ValidationError: It is malformed, or has a field too many.
        ValueError: It is of another format or version, or has two layers of one name.
    """
    if isinstance(value, FoundLayers):
        return value
    own = own_snapshot(value)
    if own is not None:
        return FoundLayers(tuple(map(_found, own.layers)), own.in_order, own.graph, own.id)
    plain = read_versioned(CompositorSessionSnapshot, value)
    names = [each.name for each in plain.layers]
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"The snapshot has several layers of one name: {', '.join(twice)}")
    return FoundLayers(
        tuple([FoundLayer(each.name, None, 1, each.lifecycle_state, each.runtime_state) for each in plain.layers])
    )


def _found(written: LayerSnapshot) -> FoundLayer:
    lifecycle, state = written.lifecycle, written.state
    return FoundLayer(written.name, written.type, written.state_version, lifecycle, state, written.cleanly)
