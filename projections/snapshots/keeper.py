"""Keeps the snapshots of one partition, and the runs that are closed for long out of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import structlog

from dagbok.events.errors import DagbokError, NotAllowed, StorageFailed
from dagbok.events.log.port import COMMANDS, Log
from dagbok.events.run.events import Event
from dagbok.projections.artifacts.port import ArtifactKey, ScopedArtifacts
from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots.ahead import Ahead
from dagbok.projections.snapshots.cut import Cut, Written, cut, write_parts
from dagbok.projections.snapshots.dirty import DirtySegments
from dagbok.projections.snapshots.index import ColdRuns, Listing
from dagbok.projections.snapshots.loader import DAMAGED, load_run, load_state, read_manifests
from dagbok.projections.snapshots.manifest import Manifest, RunParts, Slots, encode_manifest
from dagbok.projections.snapshots.roots import parts_in, stale_parts
from dagbok.projections.snapshots.sharing import Sharing
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

DUE_BYTES: Final = 16 * 1024 * 1024
COLD_AFTER_MS: Final = 3600 * 1000
TIDYING: Final = (
    "give this process the right to remove what snapshots replace: on Kafka Delete on the topic commands, on S3 "
    "s3:DeleteObject (docs/deploy.md)"
)


class SnapshotKeeper:
    """A snapshot is due when the commits since the last one have as many bytes as that one wrote, and at least
    `due_bytes`.

    A run that is closed for `cold_after_ms` of log time lies as parts only; `thaw` brings it back.
    """

    def __init__(
        self,
        log: Log,
        partition: int,
        store: ScopedArtifacts,
        slots: Slots,
        *,
        due_bytes: int = DUE_BYTES,
        cold_after_ms: int = COLD_AFTER_MS,
        before_manifest: Callable[[], None] = lambda: None,
    ) -> None:
        """`before_manifest` is called when all parts are written and the manifest is not: for tests that kill there."""
        self._log, self._partition, self._store, self._slots = log, partition, store, slots
        self._due_bytes, self._cold_after_ms, self._before_manifest = due_bytes, cold_after_ms, before_manifest
        self._since_bytes = self._written_bytes = 0
        self._dirty = DirtySegments()
        self._ahead = Ahead()
        self._newest: Manifest | None = None
        self._older: Manifest | None = None
        self._cold = ColdRuns()
        self._writing: asyncio.Task[None] | None = None
        self._given_up = False

    async def load(self) -> PartitionState:
        """The state of the newest snapshot that can be trusted; an empty one when there is none. Raises `StorageFailed`
        when the store of the parts does not answer, and what reading the slots raises: it may be called again."""
        await self.settled()
        await self._clear_given_up()
        self._dirty.take()
        self._ahead.take()
        self._since_bytes = 0
        manifests = await read_manifests(self._slots, self._log, self._partition)
        while manifests:
            newest, *manifests = manifests
            cold_before_ms = newest.clock_ms - self._cold_after_ms
            loaded = await asyncio.to_thread(load_state, newest, self._store, cold_before_ms)
            if loaded is not None:
                self._newest, self._older = newest, manifests[0] if manifests else None
                state, self._cold = loaded
                return state
        self._newest, self._older, self._cold = None, None, ColdRuns()
        return PartitionState(self._partition)

    def thaw(self, state: PartitionState, stream: str) -> None:
        """Bring a run back into memory (blocking). Raises `StorageFailed` when the store does not answer, and when its
        parts are damaged: then the snapshots are given up, and `load` and folding anew give the run."""
        if stream in self._cold:
            with self._giving_up(stream):
                self._take_back(state, stream, self._load(stream))

    async def warm(self, state: PartitionState, streams: Iterable[str]) -> None:
        """`thaw` what `streams` name, in a thread: a large run takes long to decode. The state stands still meanwhile,
        as between two batches."""
        for stream in streams:
            if stream in self._cold:
                with self._giving_up(stream):
                    self._take_back(state, stream, await asyncio.to_thread(self._load, stream))

    def peek(self, stream: str) -> RunState | None:
        """A copy of a run that lies as parts, for readers; none when it does not. Raises like `thaw`, but gives nothing
        up."""
        try:
            loaded = self._load(stream)
        except DAMAGED as error:
            raise _damaged(stream, error) from error
        return None if loaded is None else loaded[1]

    def _load(self, stream: str) -> tuple[RunParts, RunState] | None:
        parts = self._cold.find(self._store, stream)
        return None if parts is None else (parts, load_run(parts, self._store, Sharing()))

    def _take_back(self, state: PartitionState, stream: str, loaded: tuple[RunParts, RunState] | None) -> None:
        if loaded is not None:
            state.runs[stream] = loaded[1]
            self._cold.came_back(stream, loaded[0])

    @contextmanager
    def _giving_up(self, stream: str) -> Iterator[None]:
        try:
            yield
        except DAMAGED as error:
            self._given_up = True
            raise _damaged(stream, error) from error

    async def _clear_given_up(self) -> None:
        if self._given_up:
            for slot in (0, 1):
                await asyncio.to_thread(self._slots.clear, slot)
            self._given_up = False

    def note(self, state: PartitionState, stream: str | None, events: Sequence[Event], size_bytes: int) -> None:
        """A commit was folded into `state`."""
        self._since_bytes += size_bytes
        if stream is not None and stream in state.runs:
            self._dirty.note(state.runs[stream], events)

    def save_if_due(self, state: PartitionState) -> None:
        """Between two batches: when a snapshot is due, encode a part of it ahead, or cut the rest at once and begin to
        write it."""
        if self._writing is not None or self._since_bytes < max(self._due_bytes, self._written_bytes):
            return
        if self._ahead.step(state, self._dirty):
            return
        self._evict(state)
        part = cut(state, self._dirty.take(), self._ahead.take())
        self._since_bytes = 0
        self._writing = asyncio.create_task(self._write(part, self._cold.listing()))

    async def settled(self) -> None:
        """Wait for the snapshot that is being written, if any."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    @property
    def cold(self) -> frozenset[str]:
        """The streams that lie as parts only."""
        return frozenset(self._cold)

    def roots(self) -> Iterator[ArtifactKey]:
        """Every part that a manifest needs (blocking)."""
        for manifest in self._manifests():
            yield from manifest.needs()
            for chunk in manifest.closed:
                yield from parts_in(self._store, chunk)

    def _manifests(self) -> list[Manifest]:
        return [manifest for manifest in (self._newest, self._older) if manifest is not None]

    async def _write(self, part: Cut, listing: Listing) -> None:
        try:
            written = await asyncio.to_thread(self._store_snapshot, part, listing)
        except BaseException as error:
            # Whatever happened, what had changed still has. The next one is tried when as much again has happened.
            self._dirty.put_back({stream: set(run.segments) for stream, run in part.runs.items()})
            if not isinstance(error, Exception):
                raise
            logger.warning("snapshot.failed", partition=self._partition, error=str(error))
        else:
            manifest, size_bytes = written.manifest, written.size_bytes
            stale, self._older, self._newest = self._older, self._newest, manifest
            self._cold.written(written.moved, part.runs)
            self._written_bytes = size_bytes
            logger.info("snapshot.written", partition=self._partition, number=manifest.number, size_bytes=size_bytes)
            await self._tidy(stale)
        finally:
            self._writing = None

    async def _tidy(self, stale: Manifest | None) -> None:
        """What only a replaced manifest needed can go: its parts, and the commands that the older one has decided."""
        try:
            if stale is not None:
                await asyncio.to_thread(self._forget, stale)
            if self._older is not None:
                decided = self._older.position.last_command_offset + 1
                await self._log.delete_before(COMMANDS, self._partition, decided)
        except NotAllowed as error:
            # It will not pass by itself, and what is not removed grows.
            told = {"error": error.message, "advice": TIDYING}
            logger.error("snapshot.not_tidied", partition=self._partition, **told)
        except (DagbokError, OSError) as error:
            logger.warning("snapshot.not_tidied", partition=self._partition, error=str(error))

    def _store_snapshot(self, part: Cut, listing: Listing) -> Written:
        written = write_parts(part, self._newest, listing, self._store)
        self._before_manifest()
        self._slots.write(written.manifest.number % 2, encode_manifest(written.manifest))
        return written

    def _forget(self, stale: Manifest) -> None:
        """Remove the parts that only a replaced manifest needed."""
        for sha256 in stale_parts(self._store, stale, *self._manifests()):
            self._store.delete(sha256)

    def _evict(self, state: PartitionState) -> None:
        """Runs that are closed for long, and are as the newest snapshot has them, need no memory."""
        if self._newest is None:
            return
        for stream, parts in self._newest.runs.items():
            run = state.runs.get(stream)
            is_old = 0 < parts.closed_ms < state.clock_ms - self._cold_after_ms
            if is_old and run is not None and run.stream_seq == parts.seq and stream not in self._dirty:
                del state.runs[stream]
                self._cold.add(stream, parts)
        for stream in self._cold.leave_again(state.runs, self._dirty.__contains__):
            del state.runs[stream]


def _damaged(stream: str, error: Exception) -> StorageFailed:
    return StorageFailed(f"the snapshot of {stream} is damaged: {error}")
