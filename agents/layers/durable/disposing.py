"""Deleting what a session of a task has suspended, as a task: it is tried again, and what was done stays done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dagbok.agents.layers.compositor import Compositor
from dagbok.agents.layers.durable.failed import put_down_beside, put_down_last, refusal
from dagbok.agents.layers.durable.written import as_written, layers_of_session
from dagbok.agents.layers.failing import own_snapshot_of
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.models import LayerConfigInput
from dagbok.agents.layers.snapshots.rules import ResumeRules
from dagbok.agents.layers.snapshots.schema import Snapshot
from dagbok.agents.workers.context import TaskContext
from dagbok.agents.workers.terminal import Terminal
from dagbok.events.errors import Refused
from dagbok.events.specs import Outcome


async def dispose_of_session(
    task: TaskContext,
    compositor: Compositor[Any, Any, Any],
    configs: Mapping[str, LayerConfigInput] | None,
    rules: ResumeRules,
) -> Outcome:
    """One attempt: delete what is suspended, and put down what is left, also where that is not nothing.

    Raises what `Compositor.dispose` raises; `Terminal` where there is no session of layers, or one that nothing here
    can delete."""
    written = await task.session.fetch()
    if written is None:
        raise Terminal("there is nothing to dispose of: let the task begin with the fork of a session (`session`)")
    try:
        found = layers_of_session(written)
    except Refused as refused:
        raise Terminal(refused.message) from refused
    try:
        left = await compositor.dispose(found, configs=configs, resume=rules)
    except (Exception, asyncio.CancelledError) as error:
        final = refusal(error)
        if final is not None:
            raise final from error
        rest = own_snapshot_of(error)
        if rest is not None:
            await put_down_beside(error, task.session.save(_without(written, rest)))
        raise
    await put_down_last(task.session.save(_without(written, left)))
    return Outcome.candidate({"deleted": [each.name for each in found.layers if _is_suspended(each.lifecycle)]})


def _without(written: Mapping[str, Any], left: Snapshot) -> dict[str, Any]:
    """The session with the layers as they are left; those of which nothing was suspended stay as they are."""
    layers = dict(written["layers"])
    for each in left.layers:
        if _is_suspended(layers[each.name]["lifecycle"]):
            layers[each.name] = as_written(each)
    return {**written, "layers": layers}


def _is_suspended(lifecycle: str) -> bool:
    return lifecycle == LifecycleState.SUSPENDED
