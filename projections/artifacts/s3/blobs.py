"""Blobs in an S3 bucket, each writing as an object of its own (`objects.py` says why).

Needs what S3 and its like promise: an object appears whole, and listings and reads see what was written before. Needs
no conditional request, no versioning and no lock. What a killed process leaves of a large upload is not visible here;
a lifecycle rule of the bucket removes it (`docs/artifacts.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import Final

import obstore
from obstore.store import S3Store

from dagbok.events.errors import StorageFailed
from dagbok.events.log.clock import Clock, system_ms
from dagbok.projections.artifacts.blobs import BlobStat
from dagbok.projections.artifacts.port import MAX_SIZE_BYTES, ArtifactStore
from dagbok.projections.artifacts.s3.client import PATIENCE, S3Patience, connect
from dagbok.projections.artifacts.s3.failures import is_missing_bucket, storage_errors
from dagbok.projections.artifacts.s3.objects import Written, by_blob, new_key, newest, written
from dagbok.projections.artifacts.s3.place import S3Place

PIECE_BYTES: Final = 8 * 1024 * 1024
"""The most that one request carries: larger blobs go up as parts and come down as ranges."""
PARTS_AT_ONCE: Final = 4
_TRIES: Final = 10


def s3_store(
    url: str, *, max_size_bytes: int = MAX_SIZE_BYTES, patience: S3Patience = PATIENCE
) -> ArtifactStore:
    """An artifact store below ``s3://bucket/prefix``. Sends nothing yet.

    Raises `InvalidInput` (`usage`) for a URL or `AWS_*` variables that cannot be used.
    """
    return ArtifactStore(S3Blobs(S3Place.parse(url), patience), max_size_bytes=max_size_bytes)


class S3Blobs:
    """Implements `Blobs`. Blocks without holding the interpreter; any thread. Each method raises `StorageFailed` with
    advice when the service or the way to it fails for longer than `patience` allows."""

    def __init__(self, place: S3Place, patience: S3Patience = PATIENCE, clock_ms: Clock = system_ms) -> None:
        self._place, self._clock_ms = place, clock_ms
        self._bucket: Final[S3Store] = connect(place, patience)

    def write(self, name: str, data: bytes) -> None:
        """See `Blobs.write`. Besides `data`, at most `PARTS_AT_ONCE` pieces are in memory."""
        with storage_errors(self._place, name):
            superseded = self._objects(name)
            key = new_key(name, self._clock_ms)
            obstore.put(self._bucket, key, data, chunk_size=PIECE_BYTES, max_concurrency=PARTS_AT_ONCE)
            self._delete(superseded)

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """See `Blobs.read`."""
        with storage_errors(self._place, name):
            for _ in range(_TRIES):
                found = newest(self._objects(name))
                if found is None:
                    return None
                with suppress(_Gone):
                    return self._bytes(found, min(limit_bytes, found.size_bytes))
        raise self._restless(name)

    def refresh(self, name: str) -> bool:
        """See `Blobs.refresh`: the service copies the blob to a new object."""
        with storage_errors(self._place, name):
            for _ in range(_TRIES):
                present = self._objects(name)
                found = newest(present)
                if found is None:
                    return False
                with suppress(_Gone):
                    self._copy(found, new_key(name, self._clock_ms))
                    self._delete(present)
                    return True
        raise self._restless(name)

    def stat(self, name: str) -> BlobStat | None:
        """See `Blobs.stat`."""
        with storage_errors(self._place, name):
            found = newest(self._objects(name))
        return _stat(found) if found else None

    def list(self, prefix: str = "") -> Iterator[BlobStat]:
        """See `Blobs.list`."""
        return (_stat(found) for group in self._listed(prefix) if (found := newest(group)))

    def remove(self, name: str, before_ms: int | None = None) -> bool:
        """See `Blobs.remove`: only the objects that were looked at are removed; one that came since stays."""
        with storage_errors(self._place, name):
            present = self._objects(name)
            found = newest(present)
            if found is None or (before_ms is not None and found.modified_ms >= before_ms):
                return False
            self._delete(present)
        return True

    def unfinished(self, before_ms: int, *, remove: bool) -> int:
        """See `Blobs.unfinished`: superseded objects whose writer died before it removed them."""
        count = 0
        for group in self._listed(""):
            blob = newest(group)
            left = [item for item in group if item != blob and item.modified_ms < before_ms]
            count += len(left)
            if remove:
                with storage_errors(self._place, ""):
                    self._delete(left)
        return count

    def _objects(self, name: str) -> list[Written]:
        found = (item for page in obstore.list(self._bucket, name) for item in page)
        return [item for meta in found if (item := written(meta)) and item.name == name]

    def _listed(self, prefix: str) -> Iterator[list[Written]]:
        with storage_errors(self._place, ""):
            found = (meta for page in obstore.list(self._bucket, prefix or None, chunk_size=1000) for meta in page)
            yield from by_blob(item for meta in found if (item := written(meta)))

    def _bytes(self, item: Written, size_bytes: int) -> bytes:
        read = BytesIO()
        for start in range(0, size_bytes, PIECE_BYTES):
            end = min(start + PIECE_BYTES, size_bytes)
            with _gone():
                read.write(obstore.get_range(self._bucket, item.key, start=start, end=end))
        return read.getvalue()
