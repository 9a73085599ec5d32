"""From a state as it was written to one that the present class of its layer reads."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from dagbok.agents.layers.models import StateMigrator
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.slot import StateJson
from dagbok.agents.layers.snapshots.found import FoundLayer
from dagbok.agents.layers.snapshots.identity import is_of_type, state_version_of, type_of
from dagbok.agents.layers.snapshots.rules import ResumeRules, SnapshotRefused, TypeMigrator


class NoMigrator(SnapshotRefused):
    """No migrator leads from what was written to what is read. The message says which layer, from what, to what, and
    what to do."""

    def __init__(self, layer: str, said: str, advice: str) -> None:
        super().__init__(f"Layer '{layer}': {said}. {advice}")
        self.layer = layer


def migrated(was: FoundLayer, node: LayerNode, rules: ResumeRules) -> StateJson:
    """The state of a layer in the type and version of `node`; not validated.

    Raises:
        NoMigrator: A step is missing, or the state is of a later version.
        Exception: What a migrator raises, with a note that says which.
    """
    kind, to = type_of(node), state_version_of(node)
    if is_of_type(node, was.type):
        if was.state_version == to:
            return was.state
        return _stepped(was.name, kind, was.state, was.state_version, to, _steps(node, rules))
    found = next((each for each in rules.type_migrators if (each.from_type, each.to_type) == (was.type, kind)), None)
    if found is None:
        raise NoMigrator(
            was.name,
            f"it is {kind} now, its state is one of {was.type}, and no migrator leads from one to the other",
            f"Give ResumeRules(type_migrators=[TypeMigrator({was.type!r}, {kind!r}, …)]), or a policy that drops it",
        )
    old = _of_old_type(was, found, rules)
    state = _applied(was.name, found.migrate, old, f"from {found.from_type} to {found.to_type}")
    return _stepped(was.name, kind, state, found.to_version, to, _steps(node, rules))


def _of_old_type(was: FoundLayer, found: TypeMigrator, rules: ResumeRules) -> StateJson:
    steps = {**rules.migrators.get(found.from_type, {})}
    for node in rules.retired:
        if is_of_type(node, found.from_type):
            steps = {**node.provider.layer_type.state_migrators, **steps}
    return _stepped(was.name, found.from_type, was.state, was.state_version, found.from_version, steps)


def _steps(node: LayerNode, rules: ResumeRules) -> Mapping[int, StateMigrator]:
    return {**node.provider.layer_type.state_migrators, **rules.migrators.get(type_of(node), {})}


def _stepped(
    name: str, kind: str, state: StateJson, version: int, to: int, steps: Mapping[int, StateMigrator]
) -> StateJson:
    if version > to:
        raise NoMigrator(
            name,
            f"its state is of version {version} of {kind}, and this program reads version {to}",
            "Let a program go on with it that knows the later version, or give a policy that drops it",
        )
    for at in range(version, to):
        if at not in steps:
            said = f"from version {at} to {at + 1} of {kind}"
            raise NoMigrator(
                name,
                f"its state is of version {version} of {kind}, {to} is read here, and no migrator leads {said}",
                f"Declare state_migrators[{at}] on its class, or give ResumeRules(migrators={{{kind!r}: {{{at}: …}}}})",
            )
        state = _applied(name, steps[at], state, f"from version {at} to {at + 1} of {kind}")
    return state


def _applied(name: str, migrate: StateMigrator, state: StateJson, what: str) -> StateJson:
    try:
        found: object = migrate(deepcopy(state))
        if not isinstance(found, dict):
            raise TypeError(f"A migrator gives the state as an object, not {type(found).__name__}")
    except Exception as failed:
        failed.add_note(f"in the migrator {what}, of layer '{name}'")
        raise
    return found
