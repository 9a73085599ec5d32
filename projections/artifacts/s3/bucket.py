"""The requests that the adapter makes, each failing in the words of the port."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Final

import obstore

from dagbok.projections.artifacts.s3.client import S3Patience, connect
from dagbok.projections.artifacts.s3.failures import is_missing_bucket, storage_errors
from dagbok.projections.artifacts.s3.objects import Written, by_blob, written
from dagbok.projections.artifacts.s3.place import S3Place

PIECE_BYTES: Final = 8 * 1024 * 1024
"""The most that one request carries: larger objects go up as parts and come down as ranges."""
PARTS_AT_ONCE: Final = 2
_PAGE: Final = 1000


class Gone(Exception):
    """An object that was listed is no longer there."""


class Bucket:
    """A bucket below a prefix. All methods block, without holding the interpreter, and raise `StorageFailed`."""

    def __init__(self, place: S3Place, patience: S3Patience) -> None:
        self.place: Final = place
        self._store: Final = connect(place, patience)

    def objects(self, name: str) -> Sequence[Written]:
        """All writings of one blob."""
        with storage_errors(self.place, name):
            return [item for item in self._listing(name) if item.name == name]

    def blobs(self, prefix: str) -> Iterator[Sequence[Written]]:
        """All writings of each blob below a prefix, page by page."""
        with storage_errors(self.place, ""):
            yield from by_blob(self._listing(prefix or None))

    def put(self, key: str, data: bytes) -> None:
        """Store durably, whole or not at all. Besides `data`, `PARTS_AT_ONCE` pieces are in memory at most."""
        with storage_errors(self.place, key.rpartition("/")[0]):
            obstore.put(self._store, key, data, chunk_size=PIECE_BYTES, max_concurrency=PARTS_AT_ONCE)

    def get(self, item: Written, limit_bytes: int) -> bytes:
        """The first bytes of an object, or all. Raises `Gone`."""
        size_bytes = min(limit_bytes, item.size_bytes)
        read = BytesIO()
        for start in range(0, size_bytes, PIECE_BYTES):
            with self._about(item):
                end = min(start + PIECE_BYTES, size_bytes)
                read.write(obstore.get_range(self._store, item.key, start=start, end=end))
        return read.getvalue()

    def copy(self, item: Written, key: str) -> None:
        """Have the service copy an object. Raises `Gone`."""
        with self._about(item):
            obstore.copy(self._store, item.key, key)

    def delete(self, objects: Sequence[Written]) -> None:
        """Remove durably; what is no longer there is no failure."""
        if objects:
            with storage_errors(self.place, objects[0].name):
                obstore.delete(self._store, [item.key for item in objects])

    def _listing(self, prefix: str | None) -> Iterator[Written]:
        for page in obstore.list(self._store, prefix, chunk_size=_PAGE):
            for meta in page:
                if item := written(meta):
                    yield item

    @contextmanager
    def _about(self, item: Written) -> Iterator[None]:
        with storage_errors(self.place, item.name):
            try:
                yield
            except FileNotFoundError as error:
                if is_missing_bucket(error):
                    raise
                raise Gone from error
