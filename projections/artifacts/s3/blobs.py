"""Blobs in an S3 bucket, each writing as an object of its own (`objects.py` says why).

Needs what S3 and its like promise: an object appears whole, and listings and reads see what was written before. Needs
no conditional request, no versioning and no lock. What a killed process leaves of a large upload is not visible here;
a lifecycle rule of the bucket removes it (`docs/artifacts.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from dagbok.events.errors import StorageFailed
from dagbok.events.log.clock import Clock, system_ms
from dagbok.projections.artifacts.blobs import BlobStat
from dagbok.projections.artifacts.port import MAX_SIZE_BYTES, ArtifactStore
from dagbok.projections.artifacts.s3.bucket import Bucket, Gone
from dagbok.projections.artifacts.s3.client import PATIENCE, S3Patience
from dagbok.projections.artifacts.s3.objects import Written, new_key, newest
from dagbok.projections.artifacts.s3.place import S3Place

_CLOCK: Final = ".clock"
"""The name of no artifact."""
_TRIES: Final = 10
"""Each further one means that another process replaced the blob in between."""


def s3_store(url: str, *, max_size_bytes: int = MAX_SIZE_BYTES, patience: S3Patience = PATIENCE) -> ArtifactStore:
    """An artifact store below ``s3://bucket/prefix``. Sends nothing yet.

    Raises `InvalidInput` (`usage`) for a URL or `AWS_*` variables that cannot be used.
    """
    return ArtifactStore(S3Blobs(S3Place.parse(url), patience), max_size_bytes=max_size_bytes)


class S3Blobs:
    """Implements `Blobs`. Each method raises `StorageFailed` with advice when the service, or the way to it, fails for
    longer than `patience` allows."""

    def __init__(self, place: S3Place, patience: S3Patience = PATIENCE, clock_ms: Clock = system_ms) -> None:
        """`clock_ms` only gives keys an order; ages are the service's."""
        self._bucket: Final = Bucket(place, patience)
        self._clock_ms = clock_ms

    def write(self, name: str, data: bytes) -> None:
        """See `Blobs.write`."""
        superseded = self._bucket.objects(name)
        self._bucket.put(new_key(name, self._clock_ms), data)
        self._bucket.delete(superseded)

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """See `Blobs.read`."""
        for _ in range(_TRIES):
            found = newest(self._bucket.objects(name))
            if found is None:
                return None
            with suppress(Gone):
                return self._bucket.get(found, limit_bytes)
        raise self._restless(name)

    def refresh(self, name: str) -> bool:
        """See `Blobs.refresh`: the service copies the blob to a new object."""
        for _ in range(_TRIES):
            superseded = self._bucket.objects(name)
            found = newest(superseded)
            if found is None:
                return False
            with suppress(Gone):
                self._bucket.copy(found, new_key(name, self._clock_ms))
                self._bucket.delete(superseded)
                return True
        raise self._restless(name)

    def stat(self, name: str) -> BlobStat | None:
        """See `Blobs.stat`."""
        found = newest(self._bucket.objects(name))
        return _stat(found) if found else None

    def list(self, prefix: str = "") -> Iterator[BlobStat]:
        """See `Blobs.list`."""
        return (_stat(found) for objects in self._bucket.blobs(prefix) if (found := newest(objects)))

    def remove(self, name: str, before_ms: int | None = None) -> bool:
        """See `Blobs.remove`: what goes are the objects that were looked at; one that came since stays."""
        objects = self._bucket.objects(name)
        found = newest(objects)
        if found is None or (before_ms is not None and found.modified_ms >= before_ms):
            return False
        self._bucket.delete(objects)
        return True

    def now_ms(self) -> int:
        """See `Blobs.now_ms`: what the service says of an object that is written for it, and removed. Whole seconds."""
        for _ in range(_TRIES):
            self._bucket.put(new_key(_CLOCK, self._clock_ms), b"")
            told = self._bucket.objects(_CLOCK)
            self._bucket.delete(told)
            if found := newest(told):  # not when another process asked at the same time, and removed both
                return found.modified_ms
        raise self._restless(_CLOCK)

    def unfinished(self, before_ms: int, *, remove: bool) -> int:
        """See `Blobs.unfinished`: superseded objects whose writer died before it removed them."""
        count = 0
        for objects in self._bucket.blobs(""):
            blob = newest(objects)
            left = [item for item in objects if item != blob and item.modified_ms < before_ms]
            count += len(left)
            if remove:
                self._bucket.delete(left)
        return count

    def _restless(self, name: str) -> StorageFailed:
        return StorageFailed(
            f"artifact {name} in {self._bucket.place} was replaced {_TRIES} times while it was read",
            advice="use a service whose listings show at once what was written and removed, then try again",
        )


def _stat(found: Written) -> BlobStat:
    return BlobStat(found.name, found.size_bytes, found.modified_ms)
