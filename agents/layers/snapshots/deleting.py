"""The layers that delete what is suspended, with those that they depend on, in an order to enter them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dagbok.agents.layers.kept_state import valid_state
from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.models import LayerConfig, LayerConfigInput
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.plan import Dropped
from dagbok.agents.layers.snapshots.resumed import Resumed
from dagbok.agents.layers.snapshots.rules import ResumeRules

ConfigOf: TypeAlias = Callable[[LayerNode], LayerConfigInput]


@dataclass(frozen=True, slots=True)
class Deletion:
    """A layer to be entered and deleted. Without `resumed` nothing of it is suspended: it is created, because another
    depends on it, and deleted again."""

    node: LayerNode
    config: LayerConfig
    resumed: Resumed | None = None


def deletions(
    dropped: Iterable[Dropped],
    helpers: Sequence[LayerNode],
    graph: Iterable[str],
    config_of: ConfigOf,
) -> list[Deletion]:
    """Order what is deleted so that each comes behind what it depends on.

    Args:
        dropped: What is suspended, in the order in which it was entered once.
        helpers: Nodes that may be created for those that depend on them.
        graph: Names of nodes that are active anyway: they may be depended on too.
        config_of: The config of a node.

    Raises:
        ValueError: A dependency is in none of these, or retired layers depend on each other in a circle.
        pydantic.ValidationError: A config is invalid.
    """
    wanted = {each.was.name: each for each in dropped}
    spare, active = {node.name: node for node in reversed(helpers)}, frozenset(graph)
    found: dict[str, Deletion] = {}
    open_names: list[str] = []

    def visit(name: str, node: LayerNode, goes_on: Resumed | None) -> None:
        if name in found:
            return
        if name in open_names:
            raise ValueError(f"Retired layers depend on each other: {', '.join([*open_names, name])}")
        open_names.append(name)
        for target in node.deps.values():
            if target in wanted:
                visit(target, wanted[target].node, wanted[target].resumed)
            elif target not in active and target in spare:
                visit(target, spare[target], None)
            elif target not in active:
                raise ValueError(f"Layer '{name}' is to be deleted and depends on '{target}': retire that one too")
        open_names.pop()
        found[name] = Deletion(node, _config(node, config_of), goes_on)

    for name, each in wanted.items():
        visit(name, each.node, each.resumed)
    return list(found.values())


def slots_of(deleted: Sequence[Deletion], active: Mapping[str, LayerRunSlot]) -> dict[str, LayerRunSlot]:
    """Make the layers and bind what they depend on: each other first, then `active` ones.

    Raises:
        ValueError, TypeError: As for the layers of a run.
    """
    slots: dict[str, LayerRunSlot] = {}
    for each in deleted:
        layer = each.node.provider.create_layer_from_config(each.config, each.node.context)
        slots[each.node.name] = _slot(layer, each.resumed, frozenset(each.node.deps.values()))
    for each in deleted:
        bind(each.node, {**active, **slots}, slots[each.node.name].layer)
    return slots


def bind(node: LayerNode, slots: Mapping[str, LayerRunSlot], layer: AnyLayer) -> None:
    """Bind a layer to those that its node depends on. Errors have a note that names the layer."""
    bound: dict[str, AnyLayer | None] = {key: slots[target].layer for key, target in node.deps.items()}
    try:
        layer.bind_deps(bound)
    except (TypeError, ValueError) as wrong:
        wrong.add_note(f"of layer '{node.name}'")
        raise


def _slot(layer: AnyLayer, goes_on: Resumed | None, needs: frozenset[str]) -> LayerRunSlot:
    if goes_on is None:
        return LayerRunSlot(layer, LifecycleState.NEW, kept=valid_state(layer), needs=needs)
    kept = goes_on.given_to(layer)
    return LayerRunSlot(layer, goes_on.lifecycle_state, kept=kept, needs=needs, delete_may_be_tried_again=True)


def configs_of(nodes: Iterable[LayerNode], configs: Mapping[str, LayerConfigInput], rules: ResumeRules) -> ConfigOf:
    """Nodes of the graph have the configs of the run, retired ones those of the rules."""
    own = {id(node) for node in nodes}
    return lambda node: (configs if id(node) in own else rules.retired_configs).get(node.name)


def _config(node: LayerNode, config_of: ConfigOf) -> LayerConfig:
    try:
        return node.provider.validate_config(config_of(node))
    except ValueError as invalid:
        invalid.add_note(f"in the config of layer '{node.name}', which is to be deleted")
        raise
