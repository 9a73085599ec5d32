"""What becomes of each layer when a snapshot is resumed with a graph, and what is needed for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.snapshots.diff import LayerDiff, LayerOutcome, SnapshotDiff
from dagbok.agents.layers.snapshots.found import FoundLayer, FoundLayers
from dagbok.agents.layers.snapshots.identity import graph_digest, state_version_of, type_of
from dagbok.agents.layers.snapshots.resumed import Resumed
from dagbok.agents.layers.snapshots.rules import LayerChange, SnapshotRefused


@dataclass(frozen=True, slots=True)
class Dropped:
    """A suspended layer that is to be deleted, and the node that makes the layer which does it."""

    node: LayerNode
    resumed: Resumed
    was: FoundLayer


@dataclass(slots=True)
class LayerPlan:
    """What becomes of one layer, and what is needed for it. Most are resumed as they were: making one costs little."""

    node: LayerNode | None
    was: FoundLayer | None
    outcome: LayerOutcome
    changes: tuple[LayerChange, ...] = ()
    resumed: Resumed | None = None
    """What the layer of the graph goes on from; None: it is created."""
    dropped: Dropped | None = None
    problem: Exception | None = None
    """Why it cannot become what the rules want."""

    @property
    def diff(self) -> LayerDiff:
        """For people and programs that only look."""
        node, was, problem = self.node, self.was, self.problem
        notes = [] if problem is None else [str(problem), *getattr(problem, "__notes__", ())]
        return LayerDiff(
            name=node.name if node is not None else was.name if was is not None else "",
            outcome=self.outcome,
            changes=self.changes,
            lifecycle=None if was is None else was.lifecycle,
            cleanly=was is None or was.cleanly,
            was_type=None if was is None else was.type,
            was_version=None if was is None else was.state_version,
            is_type=None if node is None else type_of(node),
            is_version=None if node is None else state_version_of(node),
            why=" ".join(" ".join(notes).split()),
        )


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """All layers: those of the graph in order, then those that only the snapshot has."""

    nodes: tuple[LayerNode, ...]
    found: FoundLayers
    layers: tuple[LayerPlan, ...]

    @property
    def diff(self) -> SnapshotDiff:
        """The plan for people and programs that only look."""
        same = self.found.graph is not None and self.found.graph == graph_digest(self.nodes)
        return SnapshotDiff(self.found.id, same, tuple(each.diff for each in self.layers))

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """What is deleted, in the order of the snapshot."""
        by_name = {each.dropped.was.name: each.dropped for each in self.layers if each.dropped is not None}
        return tuple(by_name[each.name] for each in self.found.layers if each.name in by_name)

    def problems(self) -> list[Exception]:
        """Why it cannot be resumed: one error for all changes of the graph that no policy allows, then the others."""
        refused = [each.diff for each in self.layers if each.outcome is LayerOutcome.REFUSE and each.problem is None]
        deleted = [each for each in refused if each.changes == (LayerChange.CLOSED,)]
        other = [each for each in refused if each not in deleted]
        problems: list[Exception] = []
        if other:
            expected, got = [node.name for node in self.nodes], [each.name for each in self.found.layers]
            told = ", ".join(each.change_told() for each in _gone_first(other))
            said = f"Expected [{', '.join(expected)}], got [{', '.join(got)}]"
            problems.append(SnapshotRefused(f"The snapshot is of other layers. {said}: {told}"))
        problems += [
            RuntimeError(f"CLOSED snapshots cannot be entered: layer '{each.name}' was deleted") for each in deleted
        ]
        return problems + [each.problem for each in self.layers if each.problem is not None]


def _gone_first(diffs: Sequence[LayerDiff]) -> list[LayerDiff]:
    order: Mapping[LayerChange, int] = {LayerChange.REMOVED: 0, LayerChange.ADDED: 1}
    return sorted(diffs, key=lambda each: (order.get(each.changes[0], 2), each.name))
