"""What an attempt says and writes that failed."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from dagbok.agents.layers.durable.written import written_layer
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.snapshots.rules import SnapshotRefused
from dagbok.agents.layers.snapshots.schema import Snapshot
from dagbok.agents.workers.sessions.operations import Drop, Operation, put
from dagbok.agents.workers.terminal import Terminal


def refusal(error: Exception) -> Terminal | None:
    """What ends the task when the rules refuse its session: another attempt would be refused too. None for any other
    error."""
    found = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
    if not any(isinstance(each, SnapshotRefused) for each in found):
        return None
    return Terminal(f"the session of this task cannot be gone on with: {'; '.join(map(str, found))}")


async def put_down_beside(error: Exception, putting_down: Awaitable[None]) -> None:
    """Put down what an error left. That error says more than one of keeping it, which becomes a note."""
    try:
        await putting_down
    except Exception as lost:
        error.add_note(f"Also, the session of the task could not be put down: {lost}")


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
