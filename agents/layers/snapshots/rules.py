"""What shall become of a suspended layer when the graph that resumes it is another than the one that wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from dagbok.agents.layers.models import LayerConfigInput, StateMigrator
from dagbok.agents.layers.node import LayerNode


class SnapshotRefused(ValueError):
    """A snapshot is of other layers than this graph, and the rules do not say how to go on with it."""


class LayerChange(StrEnum):
    """How a layer of a graph differs from what a snapshot has under its name."""

    ADDED = "added"
    """The snapshot has none of this name."""
    REMOVED = "removed"
    """The graph has none of this name."""
    MOVED = "moved"
    """It stands elsewhere among the layers that both have."""
    RETYPED = "retyped"
    """It is of another type."""
    OUTDATED = "outdated"
    """It is of the same type, whose state is of another version now."""
    CLOSED = "closed"
    """It was deleted when the snapshot was taken."""


class ResumeAction(StrEnum):
    """What is done about a change."""

    REFUSE = "refuse"
    START_NEW = "start_new"
    """Create the layer anew. Only where nothing is suspended: it never loses a state."""
    MIGRATE = "migrate"
    """Go on with the state, migrated where its type or version is another."""
    DROP = "drop"
    """Resume what was suspended, run its delete hook, and start new what the graph has of this name."""


_REFUSE, _START_NEW, _MIGRATE, _DROP = ResumeAction
FITTING: Final[Mapping[LayerChange, tuple[ResumeAction, ...]]] = MappingProxyType(
    {
        LayerChange.ADDED: (_START_NEW, _REFUSE),
        LayerChange.REMOVED: (_DROP, _REFUSE),
        LayerChange.MOVED: (_MIGRATE, _DROP, _REFUSE),
        LayerChange.RETYPED: (_MIGRATE, _DROP, _REFUSE),
        LayerChange.OUTDATED: (_MIGRATE, _DROP, _REFUSE),
        LayerChange.CLOSED: (_START_NEW, _REFUSE),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePolicy:
    """What is done about each change of one layer. Where several meet in one layer, one that refuses decides; then one
    that drops. An action may be given as its text, as a file of rules has it. ValueError for one that does not fit its
    change."""

    added: ResumeAction = _REFUSE
    removed: ResumeAction = _REFUSE
    moved: ResumeAction = _REFUSE
    retyped: ResumeAction = _REFUSE
    outdated: ResumeAction = _MIGRATE
    """A migrator that stands on the class is declaration enough."""
    closed: ResumeAction = _REFUSE

    def __post_init__(self) -> None:
        for each in fields(self):
            action, fitting = getattr(self, each.name), FITTING[LayerChange(each.name)]
            if action not in fitting:
                raise ValueError(f"{each.name} may be {', '.join(fitting)}, not {action}")
            object.__setattr__(self, each.name, ResumeAction(action))

    def action(self, change: LayerChange) -> ResumeAction:
        """What is done about a change."""
        found: ResumeAction = getattr(self, change.value)
        return found


@dataclass(frozen=True, slots=True)
class TypeMigrator:
    """From the state of one type of layer to that of another. `migrate` is pure, and is handed a copy in
    `from_version` of the old type's state; what it gives is in `to_version` of the new type's."""

    from_type: str
    to_type: str
    migrate: StateMigrator
    from_version: int = 1
    to_version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRules:
    """How snapshots of other graphs, types and versions are resumed. Without any rule they are refused.

    - `layers`: the policy of a layer by its name; `default`: of all others.
    - `retired`: nodes of layers that are dropped and are not in the graph, or not with this type. Their dependencies
      may be retired too, or nodes of the graph. `retired_configs`: their configs by name.
    - `migrators`: by type id and version, beside those of `Layer.state_migrators`, and before them.
    - `type_migrators`: for layers that are of another type now.
    """

    layers: Mapping[str, ResumePolicy] = field(default_factory=dict)
    default: ResumePolicy = ResumePolicy()
    retired: Sequence[LayerNode] = ()
    retired_configs: Mapping[str, LayerConfigInput] = field(default_factory=dict)
    migrators: Mapping[str, Mapping[int, StateMigrator]] = field(default_factory=dict)
    type_migrators: Sequence[TypeMigrator] = ()

    def policy(self, name: str) -> ResumePolicy:
        """The policy of a layer."""
        return self.layers.get(name, self.default)


NO_RULES: Final = ResumeRules()
