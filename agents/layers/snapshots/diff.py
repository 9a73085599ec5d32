"""What resuming a snapshot would do to each layer: as data, and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.snapshots.rules import LayerChange


class LayerOutcome(StrEnum):
    """What becomes of a layer."""

    RESUME = "resume"
    """It goes on as it was left."""
    MIGRATE = "migrate"
    """It goes on: at its new place, or with its state migrated."""
    START_NEW = "start_new"
    """It is created."""
    DROP = "drop"
    """What was suspended is resumed and deleted; if the graph has one of this name, that is created."""
    FORGET = "forget"
    """It is not in the graph, and nothing of it is suspended: nothing is done."""
    REFUSE = "refuse"
    """The snapshot cannot be resumed because of it."""


@dataclass(frozen=True, slots=True)
class LayerDiff:
    """One layer. What is None is not known, or not there: `was_…` for one that is added, `is_…` for one removed."""

    name: str
    outcome: LayerOutcome
    changes: tuple[LayerChange, ...] = ()
    lifecycle: LifecycleState | None = None
    cleanly: bool = True
    was_type: str | None = None
    was_version: int | None = None
    is_type: str | None = None
    is_version: int | None = None
    why: str = ""
    """Why it is refused."""

    def change_told(self) -> str:
        """What has changed, in a few words; empty where nothing has."""
        return ", ".join(self._told(each) for each in self.changes)

    def _told(self, change: LayerChange) -> str:
        if change is LayerChange.ADDED:
            return f"{self.name} is new"
        if change is LayerChange.REMOVED:
            return f"{self.name} is gone"
        if change is LayerChange.MOVED:
            return f"{self.name} has moved"
        if change is LayerChange.RETYPED:
            return f"{self.name} is {self.is_type}, was {self.was_type}"
        if change is LayerChange.OUTDATED:
            return f"{self.name} has version {self.is_version} of its state, had {self.was_version}"
        return f"{self.name} was deleted"


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """A snapshot against a graph: its layers in the order of the graph, then those that only the snapshot has."""

    snapshot: str | None
    """Its id, if it has one."""
    same_graph: bool
    layers: tuple[LayerDiff, ...]

    @property
    def refused(self) -> tuple[LayerDiff, ...]:
        """The layers because of which it cannot be resumed; none: it can."""
        return tuple(each for each in self.layers if each.outcome is LayerOutcome.REFUSE)

    def to_data(self) -> dict[str, Any]:
        """As a JSON object."""
        layers = [{**asdict(each), "changes": list(each.changes)} for each in self.layers]
        told = {"snapshot": self.snapshot, "same_graph": self.same_graph, "can_be_resumed": not self.refused}
        return {**told, "layers": layers}

    def __str__(self) -> str:
        """A line for each layer: a mark, its name, its type, and what would happen."""
        if not self.layers:
            return "no layers"
        names, types = (max(map(len, column)) for column in zip(*map(_columns, self.layers), strict=True))
        lines = [f"{_MARKS[each.outcome]} {_line(each, names, types)}".rstrip() for each in self.layers]
        return "\n".join([*lines, _sum(self.refused)])


_MARKS = {
    LayerOutcome.RESUME: " ",
    LayerOutcome.MIGRATE: "~",
    LayerOutcome.START_NEW: "+",
    LayerOutcome.DROP: "-",
    LayerOutcome.FORGET: "-",
    LayerOutcome.REFUSE: "!",
}
_TOLD = {
    LayerOutcome.RESUME: "goes on",
    LayerOutcome.MIGRATE: "goes on, migrated",
    LayerOutcome.FORGET: "had nothing suspended",
    LayerOutcome.REFUSE: "refused",
}


def _columns(layer: LayerDiff) -> tuple[str, str]:
    return layer.name, layer.is_type or layer.was_type or ""


def _line(layer: LayerDiff, names: int, types: int) -> str:
    name, kind = _columns(layer)
    told = _outcome_told(layer)
    why = layer.why or ("" if layer.outcome is LayerOutcome.START_NEW else layer.change_told())
    unclean = "" if layer.cleanly else " (was not suspended cleanly)"
    return f"{name:{names}}  {kind:{types}}  {told}{': ' if why else ''}{why}{unclean}"


def _outcome_told(layer: LayerDiff) -> str:
    if layer.outcome is LayerOutcome.DROP:
        return "deleted" if layer.is_type is None else "deleted, then starts new"
    if layer.outcome is LayerOutcome.START_NEW:
        return "starts new" if layer.was_version is None else f"starts new: {layer.change_told()}"
    return _TOLD[layer.outcome]


def _sum(refused: Sequence[LayerDiff]) -> str:
    if not refused:
        return "can be resumed"
    return f"cannot be resumed: {', '.join(each.name for each in refused)} refused"
