"""Deleting what a snapshot has suspended, without a run, a prompt or a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dagbok.agents.layers.disposal import Disposal
from dagbok.agents.layers.failing import attach_snapshots, ending
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.models import LayerConfigInput
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.owner import Owner
from dagbok.agents.layers.preparing import unknown_configs
from dagbok.agents.layers.problems import raise_problems
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.claims import SnapshotClaims, SnapshotUsed, claim
from dagbok.agents.layers.snapshots.deleting import Deletion, configs_of, deletions, slots_of
from dagbok.agents.layers.snapshots.found import AnySnapshotValue, FoundLayer, FoundLayers, found_layers
from dagbok.agents.layers.snapshots.plan import Dropped
from dagbok.agents.layers.snapshots.planning import dropped_by
from dagbok.agents.layers.snapshots.rules import ResumeRules
from dagbok.agents.layers.snapshots.schema import LayerSnapshot, Snapshot
from dagbok.agents.layers.snapshots.taking import as_left, next_of, untouched


@dataclass(frozen=True, slots=True)
class Disposing:
    """A disposal that is to begin: all that could be checked before has been."""

    found: FoundLayers
    deleted: Sequence[Deletion]
    """What deletes each suspended layer, and what those need. Nothing is made yet."""

    def left(self, slots: Mapping[str, LayerRunSlot]) -> Snapshot:
        """The layers as they stand now."""
        nodes = {each.node.name: each.node for each in self.deleted}
        layers = [_left(each, slots.get(each.name), nodes.get(each.name)) for each in self.found.layers]
        return next_of(self.found, layers)


def prepare_disposal(
    nodes: Sequence[LayerNode],
    snapshot: AnySnapshotValue,
    configs: Mapping[str, LayerConfigInput],
    rules: ResumeRules,
) -> Disposing:
    """Find what deletes each suspended layer.

    Raises:
        ValueError: A suspended layer, or one that it depends on, has no node here; a state has no migrator; a config
            names another node.
        pydantic.ValidationError: The snapshot, a config or a state is invalid.
        ExceptionGroup: Several of these.
    """
    problems = unknown_configs(nodes, configs)
    found, graph = found_layers(snapshot), {node.name: node for node in nodes}
    dropped: list[Dropped] = []
    for was in found.layers:
        if was.lifecycle is LifecycleState.SUSPENDED:
            try:
                dropped.append(dropped_by(was, graph.get(was.name), rules))
            except Exception as problem:
                problems.append(problem)
    raise_problems("The snapshot cannot be disposed of here", problems)
    deleted = deletions(dropped, [*nodes, *rules.retired], (), configs_of(nodes, configs, rules))
    return Disposing(found, deleted)


async def dispose(disposing: Disposing, claims: SnapshotClaims, cleanup_timeout_s: float) -> Snapshot:
    """Delete the layers. Returns and raises what `Compositor.dispose` says."""
    try:
        await claim(claims, disposing.found.id)
        slots = slots_of(disposing.deleted, {})
    except SnapshotUsed:
        raise
    except BaseException as unmade:
        attach_snapshots(unmade, None, untouched(disposing.found))
        raise
    errors = await _deleted(Disposal(slots), cleanup_timeout_s)
    left, error = disposing.left(slots), ending(None, errors)
    if error is not None:
        attach_snapshots(error, None, left)
        raise error
    return left


def _left(was: FoundLayer, slot: LayerRunSlot | None, node: LayerNode | None) -> LayerSnapshot:
    if slot is None or node is None or was.lifecycle is not LifecycleState.SUSPENDED:
        return was.snapshot(was.cleanly)
    return as_left(node, slot)


async def _deleted(scopes: Disposal, cleanup_timeout_s: float) -> list[BaseException]:
    if scopes.are_idle():
        await scopes.enter()
        return await scopes.leave(None)
    owner = Owner(scopes, cleanup_timeout_s)
    return await owner.enter() or await owner.leave(None)
