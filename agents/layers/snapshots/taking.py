"""From the layers of a run that has ended to a snapshot of the own format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.found import FoundLayer, FoundLayers
from dagbok.agents.layers.snapshots.identity import graph_digest, state_version_of, type_of
from dagbok.agents.layers.snapshots.plan import ResumePlan
from dagbok.agents.layers.snapshots.schema import LayerSnapshot, Snapshot


def taken(nodes: Sequence[LayerNode], slots: Mapping[str, LayerRunSlot], parent: str | None) -> Snapshot:
    """The layers as they were left."""
    layers = tuple(as_left(node, slots[node.name]) for node in nodes)
    return Snapshot(parent=parent, graph=graph_digest(nodes), layers=layers)


def taken_after_failed_entry(
    nodes: Sequence[LayerNode],
    plan: ResumePlan | None,
    slots: Mapping[str, LayerRunSlot],
    dropped: Mapping[str, LayerRunSlot],
) -> Snapshot:
    """What an entry that failed leaves, so that it can be tried again with the same graph and rules, and goes the same
    way.

    What was suspended is suspended again, and stands in the place where it was found. What was created and deleted
    again counts as never entered. What was dropped is gone, but for a layer that begins anew under its name.
    """
    if plan is None:
        return Snapshot(graph=graph_digest(nodes), layers=tuple(map(_never_entered, nodes)))
    by_name = {node.name: node for node in nodes}
    to_drop = {each.was.name: each.node for each in plan.dropped}

    def left(was: FoundLayer) -> LayerSnapshot | None:
        name, node = was.name, by_name.get(was.name)
        if name in to_drop and dropped[name].lifecycle_state is not LifecycleState.CLOSED:
            return as_left(to_drop[name], dropped[name])
        if name in to_drop:
            return None if node is None else _never_entered(node)
        if node is not None and slots[name].lifecycle_state is LifecycleState.SUSPENDED:
            return as_left(node, slots[name])
        return was.snapshot(was.cleanly)

    return next_of(plan.found, [layer for was in plan.found.layers if (layer := left(was)) is not None])


def untouched(found: FoundLayers) -> Snapshot:
    """What was found, to be tried again: it was taken, and nothing was done with it."""
    return next_of(found, [each.snapshot(each.cleanly) for each in found.layers])


def next_of(found: FoundLayers, layers: Sequence[LayerSnapshot]) -> Snapshot:
    """What follows on a snapshot of the same graph that was taken, with the layers as they stand now."""
    return Snapshot(parent=found.id, graph=found.graph, in_order=found.in_order, layers=tuple(layers))


def as_left(node: LayerNode, slot: LayerRunSlot) -> LayerSnapshot:
    """A layer as it stands now."""
    return LayerSnapshot.model_construct(
        name=node.name,
        type=type_of(node),
        state_version=state_version_of(node),
        lifecycle=slot.lifecycle_state,
        cleanly=slot.exit_error is None,
        state=slot.kept_state,
    )


def _never_entered(node: LayerNode) -> LayerSnapshot:
    kind, version = type_of(node), state_version_of(node)
    return LayerSnapshot(name=node.name, type=kind, state_version=version, lifecycle=LifecycleState.NEW, state={})
