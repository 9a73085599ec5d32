"""From nodes, configs and a snapshot to the slots of a run: all is validated before any layer is made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.models import LayerConfig, LayerConfigInput
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.problems import raise_problems
from dagbok.agents.layers.schemas import (
    CompositorSessionSnapshot,
    CompositorSessionSnapshotValue,
    LayerSessionSnapshot,
    read_versioned,
)
from dagbok.agents.layers.slot import LayerRunSlot, StateJson, hydrate, read_state, valid_state


@dataclass(frozen=True, slots=True)
class Resumed:
    """What one layer goes on from."""

    lifecycle_state: LifecycleState
    state: BaseModel
    written: StateJson


def prepare(
    nodes: Sequence[LayerNode],
    configs: Mapping[str, LayerConfigInput] | None,
    snapshot: CompositorSessionSnapshotValue | None,
) -> dict[str, LayerRunSlot]:
    """Validate configs and snapshot, then make the layers and bind what they depend on.

    Raises:
        ValueError: A config or the snapshot names other nodes; a layer needs an environment variable that is not set; a
            factory gave a layer that was used before; a state with required fields was set by nobody.
        pydantic.ValidationError: A config, the snapshot or a state in it is invalid.
        RuntimeError: The snapshot has a layer that was closed.
        TypeError: A factory gave a layer of another class.
        ExceptionGroup: Several of these were found before the first factory was called.
    """
    problems: list[Exception] = [*missing_settings(nodes)]
    valid = _valid_configs(nodes, configs or {}, problems)
    resumed = [None] * len(nodes) if snapshot is None else _resumed(nodes, snapshot, problems)
    raise_problems("The run of the layers has several problems", problems)
    slots: dict[str, LayerRunSlot] = {}
    for node, config, before in zip(nodes, valid, resumed, strict=True):
        layer = node.provider.create_layer_from_config(config, node.context)
        if before is None:
            slots[node.name] = LayerRunSlot(layer, LifecycleState.NEW, kept_state=valid_state(layer))
            continue
        hydrate(layer, before.state)
        slots[node.name] = LayerRunSlot(layer, before.lifecycle_state, kept_state=before.written)
    for node in nodes:
        _bind(node, slots)
    return slots


def missing_settings(nodes: Sequence[LayerNode]) -> Iterator[ValueError]:
    """A problem for each layer that needs environment variables which are not set; an empty one counts as that."""
    for node in nodes:
        missing = [name for name in node.provider.layer_type.required_env if not os.environ.get(name)]
        if missing:
            yield ValueError(f"Layer '{node.name}' needs environment variables that are not set: {', '.join(missing)}")


def check_configs(nodes: Sequence[LayerNode], configs: Mapping[str, LayerConfigInput]) -> None:
    """Refuse configs that no run of these nodes would take, as `prepare` does, without a run."""
    problems: list[Exception] = []
    _valid_configs(nodes, configs, problems)
    raise_problems("The configs of the layers have several problems", problems)


def _bind(node: LayerNode, slots: Mapping[str, LayerRunSlot]) -> None:
    bound: dict[str, AnyLayer | None] = {key: slots[target].layer for key, target in node.deps.items()}
    try:
        slots[node.name].layer.bind_deps(bound)
    except (TypeError, ValueError) as wrong:
        wrong.add_note(f"of layer '{node.name}'")
        raise


def _valid_configs(
    nodes: Sequence[LayerNode], configs: Mapping[str, LayerConfigInput], problems: list[Exception]
) -> list[LayerConfig]:
    unknown = sorted(configs.keys() - {node.name for node in nodes}) if configs else []
    if unknown:
        problems.append(ValueError(f"configs has unknown layer node names: {', '.join(unknown)}"))
    valid: list[LayerConfig] = []
    for node in nodes:
        try:
            valid.append(node.provider.validate_config(configs.get(node.name)))
        except ValueError as invalid:
            invalid.add_note(f"in the config of layer '{node.name}'")
            problems.append(invalid)
    return valid


def _resumed(
    nodes: Sequence[LayerNode], value: CompositorSessionSnapshotValue, problems: list[Exception]
) -> list[Resumed | None]:
    try:
        snapshot = read_versioned(CompositorSessionSnapshot, value)
    except ValueError as invalid:
        problems.append(invalid)
        return []
    expected, got = [node.name for node in nodes], [each.name for each in snapshot.layers]
    if expected != got:
        said = f"Expected [{', '.join(expected)}], got [{', '.join(got)}]"
        problems.append(ValueError(f"The snapshot is of other layers. {said}"))
        return []
    found: list[Resumed | None] = []
    for node, each in zip(nodes, snapshot.layers, strict=True):
        try:
            found.append(_one_resumed(node, each))
        except (RuntimeError, ValueError) as refused:
            problems.append(refused)
    return found


def _one_resumed(node: LayerNode, written: LayerSessionSnapshot) -> Resumed | None:
    if written.lifecycle_state is LifecycleState.CLOSED:
        raise RuntimeError(f"CLOSED snapshots cannot be entered: layer '{node.name}' was deleted")
    if written.lifecycle_state is LifecycleState.NEW and not written.runtime_state:
        return None
    try:
        state = read_state(node.provider.layer_type, written.runtime_state)
    except ValueError as invalid:
        invalid.add_note(f"in the state of layer '{node.name}'")
        raise
    return Resumed(written.lifecycle_state, state, written.runtime_state)
