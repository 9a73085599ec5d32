"""From a snapshot and a graph to what becomes of each layer. It is what a dry run shows and what entering does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.snapshots.diff import LayerOutcome
from dagbok.agents.layers.snapshots.found import FoundLayer, FoundLayers
from dagbok.agents.layers.snapshots.identity import is_of_type, state_version_of
from dagbok.agents.layers.snapshots.moved import moved_names
from dagbok.agents.layers.snapshots.plan import Dropped, LayerPlan, ResumePlan
from dagbok.agents.layers.snapshots.resumed import resumed
from dagbok.agents.layers.snapshots.rules import LayerChange, ResumeAction, ResumeRules, SnapshotRefused

NOTHING_TO_DO: Final[frozenset[ResumeAction]] = frozenset()


def plan_resume(nodes: Sequence[LayerNode], found: FoundLayers, rules: ResumeRules) -> ResumePlan:
    """Decide about each layer by name and type. It calls migrators and validates states, and makes no layer."""
    was = {each.name: each for each in found.layers}
    names = {node.name for node in nodes}
    moved = moved_names([node.name for node in nodes], found)
    plans = [_of_node(node, was.get(node.name), node.name in moved, rules) for node in nodes]
    plans += [_of_removed(each, rules) for each in found.layers if each.name not in names]
    return ResumePlan(tuple(nodes), found, tuple(plans))


def dropped_by(was: FoundLayer, node: LayerNode | None, rules: ResumeRules) -> Dropped:
    """A suspended layer with what deletes it: a retired node of its name and type, else that of the graph.

    Raises:
        SnapshotRefused: There is none, or no migrator leads to the state that it reads.
        Exception: As `resumed.resumed`.
    """
    deleter = _deleter(was, node, rules)
    goes_on = resumed(was, deleter, rules)
    if goes_on is None:
        raise AssertionError("a suspended layer always has something to go on from")
    return Dropped(deleter, goes_on, was)


def _deleter(was: FoundLayer, node: LayerNode | None, rules: ResumeRules) -> LayerNode:
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


def _of_node(node: LayerNode, was: FoundLayer | None, moved: bool, rules: ResumeRules) -> LayerPlan:
    changes = _changes(node, was, moved)
    actions = {rules.policy(node.name).action(each) for each in changes} if changes else NOTHING_TO_DO
    if ResumeAction.REFUSE in actions:
        return LayerPlan(node, was, LayerOutcome.REFUSE, changes)
    if was is None or was.lifecycle is LifecycleState.CLOSED:
        return LayerPlan(node, was, LayerOutcome.START_NEW, changes)
    if ResumeAction.DROP in actions:
        if was.lifecycle is LifecycleState.NEW:
            return LayerPlan(node, was, LayerOutcome.START_NEW, changes)
        return _dropping(was, node, changes, rules)
    try:
        goes_on = resumed(was, node, rules)
    except Exception as problem:
        return LayerPlan(node, was, LayerOutcome.REFUSE, changes, problem=problem)
    return LayerPlan(node, was, LayerOutcome.MIGRATE if changes else LayerOutcome.RESUME, changes, goes_on)


def _of_removed(was: FoundLayer, rules: ResumeRules) -> LayerPlan:
    changes = (LayerChange.REMOVED,)
    if rules.policy(was.name).removed is ResumeAction.REFUSE:
        return LayerPlan(None, was, LayerOutcome.REFUSE, changes)
    if was.lifecycle is not LifecycleState.SUSPENDED:
        return LayerPlan(None, was, LayerOutcome.FORGET, changes)
    return _dropping(was, None, changes, rules)


def _dropping(
    was: FoundLayer, node: LayerNode | None, changes: tuple[LayerChange, ...], rules: ResumeRules
) -> LayerPlan:
    try:
        dropped = dropped_by(was, node, rules)
    except Exception as problem:
        return LayerPlan(node, was, LayerOutcome.REFUSE, changes, problem=problem)
    return LayerPlan(node, was, LayerOutcome.DROP, changes, dropped=dropped)


def _changes(node: LayerNode, was: FoundLayer | None, moved: bool) -> tuple[LayerChange, ...]:
    if was is None:
        return (LayerChange.ADDED,)
    if not is_of_type(node, was.type):
        return (LayerChange.MOVED, LayerChange.RETYPED) if moved else (LayerChange.RETYPED,)
    if was.lifecycle is LifecycleState.CLOSED:
        return (LayerChange.CLOSED,)
    nothing_yet = was.lifecycle is LifecycleState.NEW and not was.state
    outdated = was.state_version != state_version_of(node) and not nothing_yet
    return (LayerChange.MOVED,) * moved + (LayerChange.OUTDATED,) * outdated
