"""What an adapter of the artifact store implements: named blobs. It moves bytes; `port.py` above does every check.

An adapter promises:

- a blob appears under its name whole or not at all, and is durable before `write` and `refresh` return;
- `write` and `refresh` set the time of modification to now, and `remove` with `before_ms` judges that time and removes
  as one step: a blob that was written or refreshed since `before_ms` stays;
- all methods block, and may be called from any thread and from several processes;
- `StorageFailed` when the disk or the service fails, `ArtifactDamaged` when something that is no blob stands under a
  name.

Names are as in `scope.py`: relative, of ``a-z 0-9 . _ - ~`` and slashes, 4 parts, at most 279 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec


class BlobStat(msgspec.Struct, frozen=True):
    """A blob without its bytes. `modified_ms`: milliseconds since 1970, by the clock of the storage."""

    name: str
    size_bytes: int
    modified_ms: int

    @property
    def sha256(self) -> str:
        """The hash that the name promises; only `ArtifactStore.get` proves it."""
        return self.name.rpartition("/")[2]


class Blobs(Protocol):
    """Where an artifact store keeps its bytes."""

    def write(self, name: str, data: bytes) -> None:
        """Store `data` durably, in place of a blob that is already there. Leaves nothing half done when it fails."""
        ...

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """The first `limit_bytes` bytes of a blob, or all when it has fewer; None when there is none."""
        ...

    def refresh(self, name: str) -> bool:
        """Set the time of modification to now and make the blob durable as `write` does; False when there is none."""
        ...

    def stat(self, name: str) -> BlobStat | None:
        """Size and time of modification; None when there is none."""
        ...

    def list(self, prefix: str = "") -> Iterator[BlobStat]:
        """What is stored below `prefix` (nothing, or ``tenant/project``). Names that are no blob's may be among it."""
        ...

    def remove(self, name: str, before_ms: int | None = None) -> bool:
        """Remove a blob; with `before_ms` only if it was modified before. True when it was removed.

        Without `before_ms` the removal is durable; with it, a power loss may bring the blob back.
        """
        ...

    def now_ms(self) -> int:
        """The clock that gives the times of modification, in milliseconds since 1970. May make a request."""
        ...

    def unfinished(self, before_ms: int, *, remove: bool) -> int:
        """Count (and with `remove`, remove) what writers that died before `before_ms` left half done."""
        ...
