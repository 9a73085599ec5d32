"""Layers that tell what happens to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import BaseModel, ConfigDict

from dagbok.agents.layers import LayerConfig, LayerDeps, LayerNode, LayerProvider, NoLayerDeps, PlainLayer


class Told:
    """What happened, in order; what shall fail, by "name.step"; what shall wait for ever."""

    def __init__(self, fails: dict[str, BaseException] | None = None, waits: set[str] | None = None) -> None:
        self.log: list[str] = []
        self.fails = fails or {}
        self.waits = waits or set()
        self.seen: dict[str, BaseException | None] = {}
        self.reached = asyncio.Event()

    async def tell(self, step: str) -> None:
        self.log.append(step)
        if step in self.waits:
            self.reached.set()
            await asyncio.Event().wait()
        if step in self.fails:
            raise self.fails[step]


class Count(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: int = 0


class Traced(PlainLayer[NoLayerDeps, LayerConfig, Count]):
    """Tells its hooks and its resource."""

    config_type = LayerConfig

    def __init__(self, name: str, told: Told) -> None:
        self.name, self.told = name, told

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        await self.told.tell(f"{self.name}.res.enter")
        try:
            yield
        except BaseException as error:
            self.told.seen[self.name] = error
            raise
        finally:
            await self.told.tell(f"{self.name}.res.exit")

    async def on_context_create(self) -> None:
        await self.told.tell(f"{self.name}.create")

    async def on_context_resume(self) -> None:
        await self.told.tell(f"{self.name}.resume")

    async def on_context_suspend(self) -> None:
        await self.told.tell(f"{self.name}.suspend")

    async def on_context_delete(self) -> None:
        await self.told.tell(f"{self.name}.delete")


class ParentDeps(LayerDeps):
    parent: Traced


class MaybeParentDeps(LayerDeps):
    parent: Traced | None


class Child(PlainLayer[ParentDeps]):
    pass


class MaybeChild(PlainLayer[MaybeParentDeps]):
    pass


class Other(PlainLayer[NoLayerDeps]):
    type_id = "other"


def traced(told: Told, *names: str) -> list[LayerNode]:
    """A node for each name."""

    def provider(name: str) -> LayerProvider[Traced]:
        return LayerProvider.from_factory(layer_type=Traced, create=lambda _: Traced(name, told))

    return [LayerNode(name, provider(name)) for name in names]
