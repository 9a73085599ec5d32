"""Embedded hosts in a test: started without a projector, and waits that end when something happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from dagbok import Dagbok, TaskSpec, Verifier, Worker, verifier
from dagbok.agents.workers.context import Candidate, TaskContext
from dagbok.events.run.events import Event
from tests.support.audit import check_decided, effective_events

TIMEOUT_S = 30.0
E = TypeVar("E", bound=Event)


@verifier("yes", version="1")
async def yes(candidate: Candidate, task: TaskContext) -> bool:
    """Whatever it is."""
    return True


@asynccontextmanager
async def hosted(folder: Path, *definitions: Worker | Verifier) -> AsyncIterator[Dagbok]:
    """A host that has `yes` and `definitions`; its log is checked at the end. Everything within `TIMEOUT_S`."""
    async with asyncio.timeout(TIMEOUT_S), Dagbok.embedded(folder, yes, *definitions, projector="none") as dagbok:
        yield dagbok
        await check_decided(dagbok.host.log)

def spec(worker: str, *, verifier: str = "yes", id: str | None = None, **more: object) -> TaskSpec:
    """A task for `worker`."""
    return TaskSpec.model_validate({"goal": "do it", "worker": worker, "verifier": verifier, "id": id, **more})


async def events_of(dagbok: Dagbok, kind: type[E]) -> list[E]:
    """Every event of a kind that counts."""
    return [event for _, event in await effective_events(dagbok.host.log) if isinstance(event, kind)]


async def until(dagbok: Dagbok, holds: Callable[[], bool]) -> None:
    """Wait for something that the confirmed state shows: asked again after every commit."""
    happened = asyncio.Event()
    unwatch = dagbok.host.outputs.watch(lambda state, batch: happened.set() if holds() else None)
    try:
        if not holds():
            await happened.wait()
    finally:
        unwatch()
