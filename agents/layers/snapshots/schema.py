"""The own format of snapshots.

    {"format": "dagbok.layers.snapshot", "schema_version": 3, "id": …, "parent": …, "graph": digest, "in_order": true,
     "layers": [{"name", "type", "state_version", "lifecycle", "cleanly", "state"}]}

Versions 1 and 2 are Agenton's and its successor's (`importing.py`); `format` tells ours from a later one of theirs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator, model_validator

from dagbok.agents.layers.lifecycle import LifecycleState, never_active

FORMAT: Final = "dagbok.layers.snapshot"
SCHEMA_VERSION: Final = 3

_FROZEN = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


def new_snapshot_id() -> str:
    """An id that no other snapshot has: 32 hex digits."""
    return uuid4().hex


class LayerSnapshot(BaseModel):
    """One layer between two runs."""

    model_config = _FROZEN

    name: str
    type: str | None
    """Its type id, else the name of its class (`identity.type_of`); None where a format without types was imported."""
    state_version: int = Field(ge=1)
    """`Layer.state_version` of the class that wrote the state."""
    lifecycle: LifecycleState
    cleanly: bool = True
    """False: its suspend hook, its resource or its state failed when it was left; `state` is the last valid one."""
    state: dict[str, JsonValue]

    @field_validator("lifecycle")
    @classmethod
    def _never_active(cls, state: LifecycleState) -> LifecycleState:
        return never_active(state)


class Snapshot(BaseModel):
    """All layers of a compositor between two runs. It may be resumed or disposed of once; see `fork`."""

    model_config = _FROZEN

    format: Literal["dagbok.layers.snapshot"] = FORMAT
    schema_version: Literal[3] = SCHEMA_VERSION
    id: str = Field(default_factory=new_snapshot_id, min_length=1)
    parent: str | None = None
    """The snapshot that the run which ended with this one was resumed from, or that this one is a fork of."""
    graph: str | None = None
    """`identity.graph_digest` of the graph that wrote it; None where it was imported."""
    in_order: bool = True
    """False: the order of `layers` says nothing, because what it was imported from has none."""
    layers: tuple[LayerSnapshot, ...] = ()

    @model_validator(mode="after")
    def _names_are_unique(self, _: ValidationInfo) -> Snapshot:
        twice = sorted(name for name, times in Counter(each.name for each in self.layers).items() if times > 1)
        if twice:
            raise ValueError(f"the snapshot has several layers of one name: {', '.join(twice)}")
        return self

    def fork(self) -> Snapshot:
        """The same layers under an id of their own: two runs may go on from here. Both share what suspended layers
        hold outside of their state, such as a process or a lease; only the author of a layer knows if that is safe."""
        return self.model_copy(update={"id": new_snapshot_id(), "parent": self.id})

    def to_json(self) -> str:
        """JSON text; `read_snapshot` reads it again."""
        return self.model_dump_json()

    def to_data(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return self.model_dump(mode="json")
