"""The artifact store port: scope, size limit, SHA-256 and length, checked here once for every adapter (`blobs.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec
import structlog

from dagbok.events.errors import ArtifactDamaged, ArtifactNotFound, ArtifactTooLarge
from dagbok.projections.artifacts.blobs import Blobs, BlobStat
from dagbok.projections.artifacts.scope import SHA256_HEX, Scope, blob_name, is_blob_name

MAX_SIZE_BYTES: Final = 64 * 1024 * 1024
"""Default limit of one artifact."""

log = structlog.get_logger(__name__)


class ArtifactKey(msgspec.Struct, frozen=True):
    """What names an artifact within a scope: SHA-256 of its bytes in lower-case hex, and their number."""

    sha256: str
    size_bytes: int


class ArtifactStore:
    """Artifacts of all tenants on one adapter.

    The methods block (a host calls them in a thread when the bytes are many) and may be called from any thread. Each
    raises `StorageFailed` when the storage fails, and `ArtifactDamaged` where something that is no artifact stands in
    the place of one. Whoever refers to an artifact calls `put` first, also when the bytes are surely there already:
    `put` makes it young again, and only what is young is safe from `collect_orphans` until the reference is in the log.
    """

    def __init__(self, blobs: Blobs, *, max_size_bytes: int = MAX_SIZE_BYTES) -> None:
        """`max_size_bytes` limits what is stored; what was stored under a higher limit stays readable."""
        self.blobs: Final = blobs
        self.max_size_bytes: Final = max_size_bytes

    def put(self, scope: Scope, data: bytes) -> ArtifactKey:
        """Store `data` durably and return its key; the same bytes again change nothing but the age.

        A stored artifact whose bytes were damaged is replaced: these bytes are the right ones, so nothing can be lost.
        A link or a folder in its place is not: somebody put it there. Raises `ArtifactTooLarge`, and the errors of the
        class.
        """
        if len(data) > self.max_size_bytes:
            raise ArtifactTooLarge(f"an artifact of {len(data)} bytes is above the limit of {self.max_size_bytes}")
        key = ArtifactKey(sha256(data).hexdigest(), len(data))
        name = blob_name(scope, key.sha256)
        stored = self.blobs.read(name, len(data) + 1)
        # An orphan may vanish between read and refresh; refresh tells, and then it is written anew.
        if stored == data and self.blobs.refresh(name):
            return key
        if stored is not None and stored != data:
            log.warning("artifact.repaired", name=name, size_bytes=len(data))
        self.blobs.write(name, data)
        return key

    def get(self, scope: Scope, sha256_hex: str, size_bytes: int) -> bytes:
        """The bytes, proven by hash and length on every call.

        Raises `ArtifactNotFound` when this scope has no such artifact, whoever else may have one; `ArtifactDamaged`
        when the bytes are not the ones that were stored; and the errors of the class.
        """
        name = _name(scope, sha256_hex)
        data = self.blobs.read(name, max(size_bytes, 0) + 1)
        if data is None:
            raise _not_found(scope, sha256_hex)
        if len(data) != size_bytes:
            raise ArtifactDamaged(f"artifact {name} does not have {size_bytes} bytes")
        if sha256(data).hexdigest() != sha256_hex:
            raise ArtifactDamaged(f"artifact {name} does not have the SHA-256 of its name")
        return data

    def stat(self, scope: Scope, sha256_hex: str) -> BlobStat | None:
        """Size and age as the storage tells them, unproven; None when this scope has no such artifact."""
        return self.blobs.stat(_name(scope, sha256_hex)) if SHA256_HEX.fullmatch(sha256_hex) else None

    def exists(self, scope: Scope, sha256_hex: str) -> bool:
        """Is it stored now? No reason to leave out `put` before referring to it."""
        return self.stat(scope, sha256_hex) is not None

    def list(self, scope: Scope | None = None) -> Iterator[BlobStat]:
        """All artifacts of a scope, or of all scopes. What is no artifact is passed over."""
        return (blob for blob in self.blobs.list(scope.place if scope else "") if is_blob_name(blob.name))

    def delete(self, scope: Scope, sha256_hex: str) -> bool:
        """Remove durably, whoever refers to it; True when it was there."""
        return self.blobs.remove(_name(scope, sha256_hex)) if SHA256_HEX.fullmatch(sha256_hex) else False

    def within(self, scope: Scope) -> ScopedArtifacts:
        """This store, bound to one scope."""
        return ScopedArtifacts(self, scope)


@dataclass(frozen=True, slots=True)
class ScopedArtifacts:
    """An artifact store bound to one scope; each method is the one of `ArtifactStore`."""

    store: ArtifactStore
    scope: Scope

    def put(self, data: bytes) -> ArtifactKey:
        """`ArtifactStore.put`."""
        return self.store.put(self.scope, data)

    def get(self, sha256_hex: str, size_bytes: int) -> bytes:
        """`ArtifactStore.get`."""
        return self.store.get(self.scope, sha256_hex, size_bytes)

    def exists(self, sha256_hex: str) -> bool:
        """`ArtifactStore.exists`."""
        return self.store.exists(self.scope, sha256_hex)

    def delete(self, sha256_hex: str) -> bool:
        """`ArtifactStore.delete`."""
        return self.store.delete(self.scope, sha256_hex)


def _name(scope: Scope, sha256_hex: str) -> str:
    if SHA256_HEX.fullmatch(sha256_hex) is None:
        raise _not_found(scope, sha256_hex)
    return blob_name(scope, sha256_hex)


def _not_found(scope: Scope, sha256_hex: str) -> ArtifactNotFound:
    return ArtifactNotFound(f"artifact {sha256_hex[:80]!r} is not in {scope.tenant[:140]!r}, {scope.project[:140]!r}")
