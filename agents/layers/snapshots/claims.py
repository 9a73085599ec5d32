"""That a snapshot is gone on with once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

KEPT_CLAIMS: Final = 65_536


class SnapshotClaims(Protocol):
    """Knows which snapshots were resumed or disposed of. One over a database serves several processes."""

    async def claim(self, snapshot_id: str) -> bool:
        """True for the first who asks for this id, False ever after."""
        ...


class ClaimsInMemory:
    """Of this process alone: the last 65,536 ids. An older one is forgotten."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    async def claim(self, snapshot_id: str) -> bool:
        """True for the first who asks for this id."""
        if snapshot_id in self._ids:
            return False
        self._ids[snapshot_id] = None
        if len(self._ids) > KEPT_CLAIMS:
            self._ids.popitem(last=False)
        return True


class SnapshotUsed(RuntimeError):
    """A snapshot was gone on with before."""


async def claim(claims: SnapshotClaims, snapshot_id: str | None) -> None:
    """Take a snapshot for one run or one disposal. What was imported from version 1 on the way has no id: nobody can
    tell. `SnapshotUsed` when it was taken before; behind any other error nobody knows whether it is taken now."""
    if snapshot_id is not None and not await claims.claim(snapshot_id):
        raise SnapshotUsed(
            f"Snapshot {snapshot_id} was resumed or disposed of before: go on with the snapshot that this ended with, "
            "or with a fork of it (Snapshot.fork)"
        )
