"""What an attempt says and writes that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, Final

from dagbok.agents.layers.durable.written import as_written, written_layer
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.snapshots.rules import SnapshotRefused
from dagbok.agents.layers.snapshots.schema import Snapshot
from dagbok.agents.workers.sessions.difference import difference
from dagbok.agents.workers.sessions.operations import Drop, Operation, put
from dagbok.agents.workers.terminal import Terminal

STOPPED_S: Final = 5.0
"""How long an attempt that is stopped may take to put down its layers, in seconds."""
LOST: Final = "Also, the session of the task could not be put down"


def refusal(error: BaseException) -> Terminal | None:
    """What ends the task when the rules refuse its session: another attempt would be refused too. None for any other
    error."""
    found = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
    if not any(isinstance(each, SnapshotRefused) for each in found):
        return None
    return Terminal(f"the session of this task cannot be gone on with: {'; '.join(map(str, found))}")


async def put_down_last(putting_down: Awaitable[None]) -> None:
    """Put down what an attempt ends with. Who is cancelled meanwhile waits `STOPPED_S` for it: nothing comes behind it
    that would put it down."""
    task = asyncio.ensure_future(putting_down)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError as cut:
        await asyncio.wait({task}, timeout=STOPPED_S)
        if not task.done():
            task.cancel()
        elif not task.cancelled() and (lost := task.exception()) is not None:
            cut.add_note(f"{LOST}: {lost}")
        raise


async def put_down_beside(error: BaseException, putting_down: Awaitable[None]) -> None:
    """Put down what an error left; what was cancelled has `STOPPED_S` for it. That error says more than one of keeping
    it, which becomes a note."""
    try:
        if isinstance(error, Exception):
            await put_down_last(putting_down)
            return
        async with asyncio.timeout(STOPPED_S):
            await putting_down
    except Exception as lost:
        error.add_note(f"{LOST}: {lost}")


def left_unentered(written: Mapping[str, Any], left: Snapshot) -> list[Operation]:
    """What an entry that failed has changed: delete hooks that have run, which the next attempt must not run again, and
    states after hooks of resuming and suspending. What was to be migrated is left as it was put down."""
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
        elif (layer.type, layer.state_version) == (was["type"], was.get("state_version", 1)):
            changes += difference(was, as_written(layer), ("layers", name))
    return changes
