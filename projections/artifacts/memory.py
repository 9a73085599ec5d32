"""Blobs in a dictionary: for tests, and the shortest adapter, to be read before the next one is written.

Nothing here checks a hash, a size or a tenant: `ArtifactStore` does that above every adapter. What an adapter owes is
in `blobs.py`; here one lock gives both the whole blob and the one step of `remove`. To prove another adapter, hand it
to `ArtifactStoreContract` in `tests/contract/artifact_contract.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from dagbok.events.log.clock import Clock, system_ms
from dagbok.projections.artifacts.blobs import BlobStat


class MemoryBlobs:
    """Implements `Blobs`; forgotten with the object. `clock_ms` gives the times of modification."""

    def __init__(self, clock_ms: Clock = system_ms) -> None:
        self._clock_ms = clock_ms
        self._lock = Lock()
        self._blobs: dict[str, tuple[bytes, int]] = {}

    def write(self, name: str, data: bytes) -> None:
        """See `Blobs.write`."""
        with self._lock:
            self._blobs[name] = (data, self._clock_ms())

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """See `Blobs.read`."""
        with self._lock:
            blob = self._blobs.get(name)
        return blob[0][:limit_bytes] if blob else None

    def refresh(self, name: str) -> bool:
        """See `Blobs.refresh`."""
        with self._lock:
            blob = self._blobs.get(name)
            if blob:
                self._blobs[name] = (blob[0], self._clock_ms())
        return blob is not None

    def stat(self, name: str) -> BlobStat | None:
        """See `Blobs.stat`."""
        with self._lock:
            blob = self._blobs.get(name)
        return BlobStat(name, len(blob[0]), blob[1]) if blob else None

    def list(self, prefix: str = "") -> Iterator[BlobStat]:
        """See `Blobs.list`."""
        with self._lock:
            names = sorted(name for name in self._blobs if not prefix or name.startswith(prefix + "/"))
        return (found for name in names if (found := self.stat(name)))

    def remove(self, name: str, before_ms: int | None = None) -> bool:
        """See `Blobs.remove`."""
        with self._lock:
            blob = self._blobs.get(name)
            if blob is None or (before_ms is not None and blob[1] >= before_ms):
                return False
            del self._blobs[name]
        return True

    def now_ms(self) -> int:
        """See `Blobs.now_ms`."""
        return self._clock_ms()

    def unfinished(self, before_ms: int, *, remove: bool) -> int:
        """See `Blobs.unfinished`: a dictionary is never half written."""
        return 0
