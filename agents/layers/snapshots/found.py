"""What a snapshot says of its layers, of whichever accepted format it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.schemas import (
    CompositorSessionSnapshot,
    CompositorSessionSnapshotValue,
    LayerSessionSnapshot,
    read_versioned,
)
from dagbok.agents.layers.snapshots.reading import is_own, read_snapshot
from dagbok.agents.layers.snapshots.schema import LayerSnapshot, Snapshot


@dataclass(frozen=True, slots=True)
class FoundLayers:
    """The layers, their order if it is known, and what else there is to know: none of it in version 1."""

    layers: tuple[LayerSnapshot, ...]
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
    if is_own(value):
        own = read_snapshot(value)
        return FoundLayers(own.layers, own.in_order, own.graph, own.id)
    plain = read_versioned(CompositorSessionSnapshot, value)
    names = [each.name for each in plain.layers]
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"The snapshot has several layers of one name: {', '.join(twice)}")
    return FoundLayers(tuple(layer_of_version_1(each) for each in plain.layers))


def layer_of_version_1(written: LayerSessionSnapshot, lifecycle: LifecycleState | None = None) -> LayerSnapshot:
    """A layer that was validated already; it has no type, and counts as of state version 1."""
    return LayerSnapshot.model_construct(
        name=written.name,
        type=None,
        state_version=1,
        lifecycle=lifecycle or written.lifecycle_state,
        state=written.runtime_state,
    )
