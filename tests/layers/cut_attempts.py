"""Attempts that are stopped in their midst."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dagbok import TaskContext
from dagbok.agents.layers.durable import LayeredWorker


async def left_when_cut(worker: LayeredWorker, task: TaskContext, running: asyncio.Event) -> Any:
    """What the session of an attempt has that is cancelled once `running` is set."""
    working = asyncio.ensure_future(worker.work(task))
    await running.wait()
    left = task.session.load()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    return left
