"""What one layer goes on from: its state in the type and version of the present class, validated."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.slot import StateJson, read_state
from dagbok.agents.layers.snapshots.found import FoundLayer
from dagbok.agents.layers.snapshots.migrating import migrated
from dagbok.agents.layers.snapshots.rules import ResumeRules


@dataclass(frozen=True, slots=True)
class Resumed:
    """A state, and how it is written now."""

    lifecycle_state: LifecycleState
    state: BaseModel
    written: StateJson


def resumed(was: FoundLayer, node: LayerNode, rules: ResumeRules) -> Resumed | None:
    """The state that a layer goes on from; None where it was never entered and has none: it is created.

    Raises:
        NoMigrator: It is of another type or version, and no migrator leads there.
        pydantic.ValidationError: It is invalid, as it was written or as a migrator left it.
        Exception: What a migrator raises.
    """
    if was.lifecycle is LifecycleState.NEW and not was.state:
        return None
    written = migrated(was, node, rules)
    try:
        state = read_state(node.provider.layer_type, written)
    except ValueError as invalid:
        invalid.add_note(f"in the state of layer '{was.name}'")
        raise
    return Resumed(was.lifecycle, state, written)
