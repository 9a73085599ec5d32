"""From nodes, configs and a snapshot to the slots of a run: all is validated, and the snapshot taken, before any layer
is made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dagbok.agents.layers.kept_state import valid_state
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.models import LayerConfig, LayerConfigInput
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.problems import raise_problems
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.deleting import Deletion, bind, configs_of, deletions, slots_of
from dagbok.agents.layers.snapshots.found import AnySnapshotValue, found_layers
from dagbok.agents.layers.snapshots.plan import ResumePlan
from dagbok.agents.layers.snapshots.planning import plan_resume
from dagbok.agents.layers.snapshots.rules import NO_RULES, ResumeRules
from dagbok.agents.layers.snapshots.schema import Snapshot
from dagbok.agents.layers.snapshots.taking import untouched


@dataclass(frozen=True, slots=True)
class Made:
    """The layers of a run that is to be entered."""

    slots: dict[str, LayerRunSlot]
    dropped: dict[str, LayerRunSlot] = field(default_factory=dict)
    """What the snapshot has and the run shall not go on with: deleted before the body begins. With them, layers that
    they depend on and nothing else needs."""
    plan: ResumePlan | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a run is made of, all of it valid. Nothing is made yet."""

    nodes: Sequence[LayerNode]
    configs: Sequence[LayerConfig]
    plan: ResumePlan | None = None
    deleted: Sequence[Deletion] = ()

    @property
    def parent(self) -> str | None:
        """The id of the snapshot that is gone on with, if it has one."""
        return None if self.plan is None else self.plan.found.id

    def untouched(self) -> Snapshot | None:
        """The snapshot again, under another id: it was taken, and nothing was done with it."""
        return None if self.plan is None else untouched(self.plan.found)

    def make(self) -> Made:
        """Make the layers and bind what they depend on.

        Raises:
            ValueError: A factory gave a layer that was used before; a state with required fields was set by nobody.
            TypeError: A factory gave a layer of another class.
            Exception: What a factory raises.
        """
        nodes, plan = self.nodes, self.plan
        before = [None] * len(nodes) if plan is None else [each.resumed for each in plan.layers[: len(nodes)]]
        slots: dict[str, LayerRunSlot] = {}
        for node, config, goes_on in zip(nodes, self.configs, before, strict=True):
            layer = node.provider.create_layer_from_config(config, node.context)
            if goes_on is None:
                slots[node.name] = LayerRunSlot(layer, LifecycleState.NEW, kept=valid_state(layer))
                continue
            slots[node.name] = LayerRunSlot(layer, goes_on.lifecycle_state, kept=goes_on.given_to(layer))
        for node in nodes:
            bind(node, slots, slots[node.name].layer)
        return Made(slots, slots_of(self.deleted, slots) if self.deleted else {}, plan)


def prepare(
    nodes: Sequence[LayerNode],
    configs: Mapping[str, LayerConfigInput] | None,
    snapshot: AnySnapshotValue | None,
    rules: ResumeRules = NO_RULES,
) -> Prepared:
    """Validate configs and snapshot.

    Raises:
        SnapshotRefused (a ValueError): The snapshot is of other layers, and the rules do not say what to do about it.
        NoMigrator (one of those): A state is of another version or type, and no migrator leads from it.
        ValueError: A config names another node; a layer needs an environment variable that is not set.
        pydantic.ValidationError: A config, the snapshot or a state in it is invalid.
        RuntimeError: The snapshot has a layer that was closed.
        ExceptionGroup: Several of these.
    """
    problems: list[Exception] = [*missing_settings(nodes)]
    valid = _valid_configs(nodes, configs or {}, problems)
    plan = None if snapshot is None else _planned(nodes, snapshot, rules, problems)
    deleted = [] if plan is None or problems else _deletions(plan, rules, configs or {}, problems)
    raise_problems("The run of the layers has several problems", problems)
    return Prepared(nodes, valid, plan, deleted)


def unknown_configs(nodes: Sequence[LayerNode], configs: Mapping[str, LayerConfigInput]) -> list[Exception]:
    """What is wrong with the names of configs."""
    unknown = sorted(configs.keys() - {node.name for node in nodes}) if configs else []
    return [ValueError(f"configs has unknown layer node names: {', '.join(unknown)}")] if unknown else []


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


def _valid_configs(
    nodes: Sequence[LayerNode], configs: Mapping[str, LayerConfigInput], problems: list[Exception]
) -> list[LayerConfig]:
    problems += unknown_configs(nodes, configs)
    valid: list[LayerConfig] = []
    for node in nodes:
        try:
            valid.append(node.provider.validate_config(configs.get(node.name)))
        except ValueError as invalid:
            invalid.add_note(f"in the config of layer '{node.name}'")
            problems.append(invalid)
    return valid


def _planned(
    nodes: Sequence[LayerNode], value: AnySnapshotValue, rules: ResumeRules, problems: list[Exception]
) -> ResumePlan | None:
    try:
        plan = plan_resume(nodes, found_layers(value), rules)
    except ValueError as invalid:
        problems.append(invalid)
        return None
    problems += plan.problems()
    return plan


def _deletions(
    plan: ResumePlan, rules: ResumeRules, configs: Mapping[str, LayerConfigInput], problems: list[Exception]
) -> list[Deletion]:
    try:
        names, config_of = [node.name for node in plan.nodes], configs_of(plan.nodes, configs, rules)
        return deletions(plan.dropped, rules.retired, names, config_of)
    except ValueError as impossible:
        problems.append(impossible)
        return []
