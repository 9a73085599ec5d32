"""Layers of several kinds, entered and left by the clock."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import BaseModel

from dagbok.agents.layers import Compositor, LayerConfig, LayerNode, NoLayerDeps, PlainLayer
from dagbok.agents.layers.layer import AnyLayer

SIZES = (5, 50, 500)


class Words(LayerConfig):
    text: str = ""
    count: int = 0


class Kept(BaseModel):
    turns: int = 0
    last: str = ""


class Idle(PlainLayer[NoLayerDeps]):
    pass


class Configured(PlainLayer[NoLayerDeps, Words]):
    pass


class Stateful(PlainLayer[NoLayerDeps, LayerConfig, Kept]):
    pass


class Hooked(PlainLayer[NoLayerDeps]):
    async def on_context_create(self) -> None:
        pass

    async def on_context_resume(self) -> None:
        pass

    async def on_context_suspend(self) -> None:
        pass

    async def on_context_delete(self) -> None:
        pass


class Holding(Hooked):
    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        yield


KINDS: dict[str, type[PlainLayer[NoLayerDeps]]] = {"idle": Idle, "hooks": Hooked, "resource": Holding}
TYPES: dict[str, type[AnyLayer]] = {**KINDS, "config": Configured, "state": Stateful}


def measure(repeat: int) -> dict[str, tuple[float, float]]:
    """Best and median µs per layer, by kind and number of layers."""
    return asyncio.run(_all(repeat))


async def _all(repeat: int) -> dict[str, tuple[float, float]]:
    return {f"{kind} {size}": await _one(kind, size, repeat) for kind in TYPES for size in SIZES}


async def _one(kind: str, size: int, repeat: int) -> tuple[float, float]:
    names = [f"layer-{number}" for number in range(size)]
    compositor: Compositor = Compositor([LayerNode(name, TYPES[kind]) for name in names])
    configs = {name: {"text": "hello", "count": 3} for name in names} if kind == "config" else None
    taken: list[float] = []
    for _ in range(repeat + 5):
        start = time.perf_counter()
        async with compositor.enter(configs=configs) as run:
            if kind == "state":
                run.suspend_on_exit()
        taken.append((time.perf_counter() - start) * 1e6 / size)
    return min(taken[5:]), statistics.median(taken[5:])
