"""Reads the artifacts that a dispatch names: bytes it carries, inline bytes from the log, larger ones from the
store."""

from __future__ import annotations

from dagbok.events.envelope import Dispatch, Input
from dagbok.events.errors import ArtifactDamaged
from dagbok.events.log.port import Log
from dagbok.events.places import inline_bytes, is_proven
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import Scope


class ArtifactReader:
    """Where the bytes of a tenant's artifacts are. Blocks; any thread."""

    def __init__(self, log: Log, store: ArtifactStore) -> None:
        self._log, self._store = log, store

    def read(self, scope: Scope, item: Input) -> bytes:
        """The bytes, proven by hash and length wherever they come from.

        Raises `ArtifactDamaged` or `ArtifactNotFound`.
        """
        ref = item.ref
        if item.inline is not None:
            if not is_proven(ref, item.inline):
                raise ArtifactDamaged(f"the dispatched bytes of artifact {ref.name} are not the ones that were staged")
            return item.inline
        if ref.place is not None:
            return inline_bytes(self._log, ref)
        return self._store.get(scope, ref.sha256, ref.size_bytes)

    def put(self, scope: Scope, data: bytes) -> None:
        """Store bytes durably under their hash. Raises `ArtifactTooLarge` or `StorageFailed`."""
        self._store.put(scope, data)


def scope_of(dispatch: Dispatch) -> Scope:
    """The scope that a dispatched task may read and write in."""
    return Scope(dispatch.tenant, dispatch.project)
