"""From the layers of a run that has ended to a snapshot of the own format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.identity import graph_digest, state_version_of, type_of
from dagbok.agents.layers.snapshots.plan import ResumePlan
from dagbok.agents.layers.snapshots.schema import LayerSnapshot, Snapshot


def taken(nodes: Sequence[LayerNode], slots: Mapping[str, LayerRunSlot], parent: str | None) -> Snapshot:
    """The layers as they were left."""
    layers = tuple(_layer(node, slots[node.name]) for node in nodes)
    return Snapshot(parent=parent, graph=graph_digest(nodes), layers=layers)


def taken_after_failed_entry(
    nodes: Sequence[LayerNode],
    plan: ResumePlan | None,
    slots: Mapping[str, LayerRunSlot],
    dropped: Mapping[str, LayerRunSlot],
) -> Snapshot:
    """What an entry that failed leaves, so that it can be tried again with the same graph and rules.

    What was suspended is suspended again. What was created and deleted again counts as never entered. What was to be
    dropped and was not stands as it was found, in the place of what the graph has of its name.
    """
    left = left_over(plan, dropped)
    layers = [left.pop(node.name) if node.name in left else _as_before(node, slots[node.name]) for node in nodes]
    parent = None if plan is None else plan.found.id
    return Snapshot(parent=parent, graph=graph_digest(nodes), layers=(*layers, *left.values()))


def left_over(plan: ResumePlan | None, dropped: Mapping[str, LayerRunSlot]) -> dict[str, LayerSnapshot]:
    """What was to be dropped and is still suspended, by name."""
    return {
        each.was.name: each.was.snapshot(cleanly=dropped[each.was.name].exit_error is None)
        for each in (() if plan is None else plan.dropped)
        if dropped[each.was.name].lifecycle_state is not LifecycleState.CLOSED
    }


def _layer(node: LayerNode, slot: LayerRunSlot) -> LayerSnapshot:
    return LayerSnapshot.model_construct(
        name=node.name,
        type=type_of(node),
        state_version=state_version_of(node),
        lifecycle=slot.lifecycle_state,
        cleanly=not slot.uncleanly_suspended,
        state=slot.kept_state,
    )


def _as_before(node: LayerNode, slot: LayerRunSlot) -> LayerSnapshot:
    layer = _layer(node, slot)
    if slot.lifecycle_state is LifecycleState.SUSPENDED:
        return layer
    return layer.model_copy(update={"lifecycle": LifecycleState.NEW, "state": {}})
