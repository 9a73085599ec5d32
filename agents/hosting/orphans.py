"""Collects what no log or snapshot of a data folder refers to any more. May run beside a living owner."""

from __future__ import annotations

import asyncio

from dagbok.agents.hosting.folder import PARTITION, DataFolder
from dagbok.agents.hosting.snapshots import parts_of, slots_of
from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.orphans import GRACE_S, OrphanReport, Reference, collect_orphans
from dagbok.projections.artifacts.references import stored_references
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.snapshots.roots import roots_of


async def collect(folder: DataFolder, *, grace_s: float = GRACE_S, dry_run: bool = True) -> list[OrphanReport]:
    """Artifacts first, then parts of snapshots; one report each. Only what is unreferenced and older than `grace_s`
    goes.

    Raises what reading the log raises; nothing is removed then.
    """
    log = SqliteLog.open(folder.log)
    try:
        loop = asyncio.get_running_loop()

        def referred() -> set[Reference]:
            return asyncio.run_coroutine_threadsafe(stored_references(log, PARTITION), loop).result()

        def needed() -> set[Reference]:
            return {(SNAPSHOT_CHUNKS, key.sha256) for key in roots_of(slots_of(folder), parts_of(folder))}

        reports = []
        for store, roots in ((local_store(folder.artifacts), referred), (local_store(folder.snapshots), needed)):
            reports.append(await asyncio.to_thread(collect_orphans, store, roots, grace_s=grace_s, dry_run=dry_run))
        return reports
    finally:
        await log.close()
