"""Collection of orphans: removes artifacts that nothing refers to and that nobody has put for a while.

Why it cannot remove what is referred to: a reference counts when `roots` names it, and `roots` is asked after the old
artifacts were listed. A reference that is not in the log by then was preceded by a `put`, at most a grace ago; the
`put` made the artifact young, and the adapter removes only what is still old in the step that removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import structlog

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.projections.artifacts.blobs import BlobStat
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import Scope, blob_name

GRACE_S: Final = 7 * 24 * 3600.0
MIN_GRACE_S: Final = 3600.0
"""A grace below an hour could remove what a running attempt has stored and not yet handed over."""

Reference = tuple[Scope, str]
"""Scope and SHA-256 in hex of an artifact that is referred to."""

log = structlog.get_logger(__name__)


class OrphanReport(msgspec.Struct, frozen=True):
    """What a collection did or, with `dry_run`, would do.

    `listed` artifacts were seen, `young` of them within the grace; `orphans` were removed, and `unfinished` leftovers
    of writers that died.
    """

    dry_run: bool
    listed: int
    young: int
    orphans: tuple[BlobStat, ...]
    unfinished: int

    @property
    def size_bytes(self) -> int:
        """Sum of the sizes of the orphans."""
        return sum(blob.size_bytes for blob in self.orphans)


def collect_orphans(
    store: ArtifactStore,
    roots: Callable[[], Iterable[Reference]],
    *,
    now_ms: int | None = None,
    grace_s: float = GRACE_S,
    dry_run: bool = True,
) -> OrphanReport:
    """Remove from `store` what `roots` does not name and what was last put more than `grace_s` before `now_ms`.

    `roots` gives every reference that counts, read when it is called: staged, published and inputs of all runs in all
    scopes of this store, those that stand only in snapshots included. If it raises, nothing is removed. What lies in
    the storage under a name that is no artifact's is left alone. Runs beside writers. `now_ms` (milliseconds since
    1970): none asks the storage, whose clock gave the ages and may not be this machine's. Blocks. Raises `InvalidInput`
    for a grace below `MIN_GRACE_S`, and `StorageFailed`: what was removed until then stays removed.
    """
    if not grace_s >= MIN_GRACE_S:
        raise InvalidInput(f"a grace of {grace_s} s is below {MIN_GRACE_S:.0f} s", code=Code.USAGE)
    before_ms = (store.blobs.now_ms() if now_ms is None else now_ms) - int(grace_s * 1000)
    listed = 0
    old: dict[str, BlobStat] = {}
    for blob in store.list():
        listed += 1
        if blob.modified_ms < before_ms:
            old[blob.name] = blob
    young = listed - len(old)
    for scope, sha256_hex in roots():
        old.pop(blob_name(scope, sha256_hex), None)
    orphans = tuple(blob for blob in old.values() if dry_run or store.blobs.remove(blob.name, before_ms))
    unfinished = store.blobs.unfinished(before_ms, remove=not dry_run)
    report = OrphanReport(dry_run, listed, young, orphans, unfinished)
    if orphans or unfinished:
        counts = {"orphans": len(orphans), "size_bytes": report.size_bytes, "unfinished": unfinished}
        log.info("artifact.orphans", dry_run=dry_run, **counts)
    return report
