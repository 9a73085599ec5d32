"""Snapshots for whoever folds a partition to look at it: they are read, and never written or given up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dagbok.agents.scheduler.recover import Keeper
from dagbok.events.run.events import Event, RunPaused
from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots.manifest import Slots
from dagbok.projections.task_graph.state import RunState


class ReadSlots:
    """The slots of somebody else."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots

    def read(self) -> list[bytes]:
        """See `Slots`."""
        return self._slots.read()

    def write(self, slot: int, data: bytes) -> None:
        """Never."""
        raise AssertionError("whoever looks takes no snapshot")

    def clear(self, slot: int) -> None:
        """A damaged snapshot is its owner's affair."""


class PausedBy(msgspec.Struct, frozen=True):
    """When a run was paused (log time), and what was said then."""

    at_ms: int
    reason: str


class LookingKeeper:
    """Another keeper, which also notes who was paused: in `paused`, by stream. A pause before the snapshot is not
    there."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.paused: dict[str, PausedBy] = {}

    async def load(self) -> PartitionState:
        """See `Keeper`."""
        self.paused.clear()
        return await self._keeper.load()

    def thaw(self, state: PartitionState, stream: str) -> None:
        """See `Keeper`."""
        self._keeper.thaw(state, stream)

    async def warm(self, state: PartitionState, streams: Iterable[str]) -> None:
        """See `Keeper`."""
        await self._keeper.warm(state, streams)

    def peek(self, stream: str) -> RunState | None:
        """See `Keeper`."""
        return self._keeper.peek(stream)

    def note(self, state: PartitionState, stream: str | None, events: Sequence[Event], size_bytes: int) -> None:
        """See `Keeper`."""
        for event in events:
            if isinstance(event, RunPaused) and stream is not None:
                self.paused[stream] = PausedBy(state.clock_ms, event.reason)
        self._keeper.note(state, stream, events, size_bytes)

    def save_if_due(self, state: PartitionState) -> None:
        """Never."""

    async def settled(self) -> None:
        """Nothing is written."""
