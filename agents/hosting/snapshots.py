"""Where the snapshots of a data folder lie, for whoever writes or reads them."""

from __future__ import annotations

from functools import partial

from dagbok.agents.faultpoints import CHUNKS_WRITTEN, reach
from dagbok.agents.hosting.folder import PARTITION, DataFolder
from dagbok.agents.hosting.one_run import Source
from dagbok.events.log.port import Log
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.port import ScopedArtifacts
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.snapshots.keeper import DUE_BYTES, SnapshotKeeper
from dagbok.projections.snapshots.slots import FileSlots


def slots_of(folder: DataFolder) -> FileSlots:
    """The manifests of a data folder."""
    return FileSlots(folder.snapshots, PARTITION)


def parts_of(folder: DataFolder) -> ScopedArtifacts:
    """What the manifests name."""
    return local_store(folder.snapshots).within(SNAPSHOT_CHUNKS)


def keeper_of(folder: DataFolder, log: Log, due_bytes: int = DUE_BYTES) -> SnapshotKeeper:
    """The snapshots that the owner of a data folder writes; `due_bytes` as in `SnapshotKeeper`."""
    return SnapshotKeeper(
        log,
        PARTITION,
        parts_of(folder),
        slots_of(folder),
        due_bytes=due_bytes,
        before_manifest=partial(reach, CHUNKS_WRITTEN),
    )


def source_of(folder: DataFolder, log: Log) -> Source:
    """Where single runs of a data folder are read."""
    return Source(log, PARTITION, slots_of(folder), parts_of(folder), log_refuses=True)
