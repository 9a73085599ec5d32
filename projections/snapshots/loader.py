"""Loads the newest snapshot that can be trusted; a damaged one only makes recovery slower.

A store that does not answer says nothing of what it has: `StorageFailed` is no damage. It is raised, and whoever needs
the snapshot tries again: to read everything instead would take longer than most outages, and lose the snapshots.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
import structlog
import zstandard

from dagbok.events.errors import ArtifactError, LogLost
from dagbok.events.log.port import Log
from dagbok.projections.artifacts.port import ScopedArtifacts
from dagbok.projections.partition import PartitionState
from dagbok.projections.reading import check_head
from dagbok.projections.snapshots.fold import fold_name
from dagbok.projections.snapshots.index import ColdRuns, read_chunk
from dagbok.projections.snapshots.manifest import Manifest, RunParts, Slots, decode_manifest
from dagbok.projections.snapshots.parts import decode_remembered, decode_run, read_part
from dagbok.projections.snapshots.sharing import Sharing
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

DAMAGED: Final = (ArtifactError, msgspec.MsgspecError, zstandard.ZstdError)
"""What reading a part raises that will never be read again: missing, altered, or of a form that this code does not
know."""


async def read_manifests(slots: Slots, log: Log, partition: int) -> list[Manifest]:
    """The manifests that belong to this log and fold, newest first."""
    found = []
    for data in await asyncio.to_thread(slots.read):
        manifest = decode_manifest(data)
        if manifest is None:
            logger.warning("snapshot.unreadable", partition=partition)
        elif manifest.fold != fold_name() or manifest.partition != partition:
            logger.info("snapshot.of_other_fold", partition=partition, number=manifest.number)
        elif not await _is_of(log, manifest):
            logger.warning("snapshot.of_other_log", partition=partition, number=manifest.number)
        else:
            found.append(manifest)
    return sorted(found, key=lambda manifest: manifest.number, reverse=True)


def load_state(
    manifest: Manifest, store: ScopedArtifacts, cold_before_ms: int
) -> tuple[PartitionState, ColdRuns] | None:
    """The state, and the runs that stay parts: those in chunks, and those that were closed before `cold_before_ms`.
    None when a part that is wanted now, or a chunk, is damaged. Raises `StorageFailed` when the store does not answer
    (blocking)."""
    try:
        with _no_collection():
            remembered = decode_remembered(read_part(store, manifest.remembered))
            state = PartitionState(manifest.partition, manifest.position, manifest.clock_ms, remembered=remembered)
            cold, sharing = ColdRuns(), Sharing()
            for chunk in manifest.closed:
                cold.add_chunk(chunk.key, read_chunk(store, chunk.key).keys() - manifest.runs.keys())
            for stream, parts in manifest.runs.items():
                if 0 < parts.closed_ms < cold_before_ms and all(store.exists(key.sha256) for key in parts.needs()):
                    cold.add(stream, parts)
                else:
                    state.runs[stream] = load_run(parts, store, sharing)
            return state, cold
    except DAMAGED as error:
        logger.warning("snapshot.damaged", partition=manifest.partition, number=manifest.number, error=str(error))
        return None


def load_run(parts: RunParts, store: ScopedArtifacts, sharing: Sharing) -> RunState:
    """One run; what is equal in all runs that share `sharing` is one object. Raises one of `DAMAGED`, or
    `StorageFailed`."""
    return decode_run(read_part(store, parts.head), (read_part(store, key) for key in parts.segments), sharing)


async def _is_of(log: Log, manifest: Manifest) -> bool:
    try:
        await check_head(log, manifest.partition, manifest.position)
    except LogLost:
        return False
    return True


@contextmanager
def _no_collection() -> Iterator[None]:
    """A million new objects and no garbage: the collector would only walk them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
