"""What an attempt says and writes whose layers could not be entered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dagbok.agents.layers.durable.written import written_layer
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.snapshots.schema import Snapshot
from dagbok.agents.workers.sessions.operations import Drop, Operation, put


def told(errors: Iterable[BaseException]) -> str:
    """Errors in one line."""
    return "; ".join(str(each) for each in errors)


def already_deleted(written: Mapping[str, Any], left: Snapshot) -> list[Operation]:
    """The layers whose delete hooks have run although the entry failed: the next attempt must not delete them again.
    All others stay as they were put down."""
    now = {each.name: each for each in left.layers}
    changes: list[Operation] = []
    for name, was in written["layers"].items():
        layer = now.get(name)
        if was["lifecycle"] != LifecycleState.SUSPENDED:
            continue
        if layer is None:
            changes.append(Drop(("layers", name)))
        elif layer.lifecycle is not LifecycleState.SUSPENDED:
            closed = written_layer(layer.type or "", layer.state_version, LifecycleState.CLOSED, {})
            changes.append(put(("layers", name), closed))
    return changes
