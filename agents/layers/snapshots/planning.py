"""From a snapshot and a graph to what becomes of each layer. It is what a dry run shows and what entering does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.snapshots.diff import LayerDiff, LayerOutcome, SnapshotDiff
from dagbok.agents.layers.snapshots.found import FoundLayers
from dagbok.agents.layers.snapshots.identity import graph_digest, is_of_type, state_version_of, type_of
from dagbok.agents.layers.snapshots.moved import moved_names
from dagbok.agents.layers.snapshots.resumed import Resumed, resumed
from dagbok.agents.layers.snapshots.rules import LayerChange, ResumeAction, ResumeRules, SnapshotRefused
from dagbok.agents.layers.snapshots.schema import LayerSnapshot


@dataclass(frozen=True, slots=True)
class Dropped:
    """A suspended layer that is to be deleted, and the node that makes the layer which does it."""

    node: LayerNode
    resumed: Resumed
    was: LayerSnapshot


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """What becomes of one layer, and what is needed for it."""

    diff: LayerDiff
    resumed: Resumed | None = None
    """What the layer of the graph goes on from; None: it is created."""
    dropped: Dropped | None = None
    problem: Exception | None = None
    """Why it cannot become what the rules want."""


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
        refused = [each.diff for each in self.layers if each.diff.outcome is LayerOutcome.REFUSE and not each.problem]
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


def plan_resume(nodes: Sequence[LayerNode], found: FoundLayers, rules: ResumeRules) -> ResumePlan:
    """Decide about each layer by name and type. It calls migrators and validates states, and makes no layer."""
    was = {each.name: each for each in found.layers}
    names = {node.name for node in nodes}
    moved = moved_names([node.name for node in nodes], found)
    plans = [_of_node(node, was.get(node.name), node.name in moved, rules) for node in nodes]
    plans += [_of_removed(each, rules) for each in found.layers if each.name not in names]
    return ResumePlan(tuple(nodes), found, tuple(plans))


def deleter_of(was: LayerSnapshot, node: LayerNode | None, rules: ResumeRules) -> LayerNode:
    """The node whose layer deletes what is suspended: a retired one of its name and type, else that of the graph.

    Raises:
        SnapshotRefused: There is none.
    """
    found = [each for each in rules.retired if each.name == was.name and is_of_type(each, was.type)]
    if node is not None and is_of_type(node, was.type):
        found.append(node)
    if not found:
        kind = "" if was.type is None else f" of type {was.type!r}"
        raise SnapshotRefused(
            f"Layer '{was.name}' is to be deleted, and nothing here can: give a node of this name{kind} in "
            "ResumeRules(retired=…)"
        )
    return next((each for each in found if state_version_of(each) == was.state_version), found[0])


def _of_node(node: LayerNode, was: LayerSnapshot | None, moved: bool, rules: ResumeRules) -> LayerPlan:
    changes = tuple(_changes(node, was, moved))
    actions = {rules.policy(node.name).action(each) for each in changes}
    diff = _diff(LayerOutcome.RESUME, changes, was, node)
    if ResumeAction.REFUSE in actions:
        return LayerPlan(_with(diff, LayerOutcome.REFUSE))
    if was is None or was.lifecycle is LifecycleState.CLOSED:
        return LayerPlan(_with(diff, LayerOutcome.START_NEW))
    if ResumeAction.DROP in actions:
        if was.lifecycle is LifecycleState.NEW:
            return LayerPlan(_with(diff, LayerOutcome.START_NEW))
        return _dropping(diff, was, node, rules)
    try:
        goes_on = resumed(was, node, rules)
    except Exception as problem:
        return _impossible(diff, problem)
    return LayerPlan(_with(diff, LayerOutcome.MIGRATE) if changes else diff, resumed=goes_on)


def _of_removed(was: LayerSnapshot, rules: ResumeRules) -> LayerPlan:
    diff = _diff(LayerOutcome.FORGET, (LayerChange.REMOVED,), was, None)
    if rules.policy(was.name).removed is ResumeAction.REFUSE:
        return LayerPlan(_with(diff, LayerOutcome.REFUSE))
    if was.lifecycle is not LifecycleState.SUSPENDED:
        return LayerPlan(diff)
    return _dropping(diff, was, None, rules)


def _dropping(diff: LayerDiff, was: LayerSnapshot, node: LayerNode | None, rules: ResumeRules) -> LayerPlan:
    try:
        deleter = deleter_of(was, node, rules)
        goes_on = resumed(was, deleter, rules)
    except Exception as problem:
        return _impossible(diff, problem)
    if goes_on is None:
        raise AssertionError("a suspended layer always has something to go on from")
    return LayerPlan(_with(diff, LayerOutcome.DROP), dropped=Dropped(deleter, goes_on, was))


def _changes(node: LayerNode, was: LayerSnapshot | None, moved: bool) -> list[LayerChange]:
    if was is None:
        return [LayerChange.ADDED]
    if not is_of_type(node, was.type):
        return [LayerChange.MOVED, LayerChange.RETYPED] if moved else [LayerChange.RETYPED]
    if was.lifecycle is LifecycleState.CLOSED:
        return [LayerChange.CLOSED]
    nothing_yet = was.lifecycle is LifecycleState.NEW and not was.state
    outdated = was.state_version != state_version_of(node) and not nothing_yet
    return [LayerChange.MOVED] * moved + [LayerChange.OUTDATED] * outdated


def _diff(
    outcome: LayerOutcome, changes: tuple[LayerChange, ...], was: LayerSnapshot | None, node: LayerNode | None
) -> LayerDiff:
    diff = LayerDiff("" if node is None else node.name, outcome, changes)
    if node is not None:
        diff = replace(diff, is_type=type_of(node), is_version=state_version_of(node))
    if was is None:
        return diff
    diff = replace(diff, name=was.name, lifecycle=was.lifecycle, cleanly=was.cleanly)
    return replace(diff, was_type=was.type, was_version=was.state_version)


def _with(diff: LayerDiff, outcome: LayerOutcome, why: str = "") -> LayerDiff:
    return replace(diff, outcome=outcome, why=why)


def _impossible(diff: LayerDiff, problem: Exception) -> LayerPlan:
    why = " ".join(" ".join([str(problem), *getattr(problem, "__notes__", ())]).split())
    return LayerPlan(_with(diff, LayerOutcome.REFUSE, why), problem=problem)


def _gone_first(diffs: Sequence[LayerDiff]) -> list[LayerDiff]:
    order: Mapping[LayerChange, int] = {LayerChange.REMOVED: 0, LayerChange.ADDED: 1}
    return sorted(diffs, key=lambda each: (order.get(each.changes[0], 2), each.name))
