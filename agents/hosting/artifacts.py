"""Where processes that share no data folder keep artifacts, by one word: a URL, or a folder that all of them reach."""

from __future__ import annotations

from pathlib import Path

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.extras import not_installed
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.port import MAX_SIZE_BYTES, ArtifactStore


def open_artifacts(place: str, *, max_size_bytes: int = MAX_SIZE_BYTES) -> ArtifactStore:
    """The store in ``s3://bucket/prefix``, or in the folder of that path. Sends nothing and makes nothing yet.

    Every process of a log names the same place, and no other log may name it: a collection of orphans removes whatever
    its own log does not refer to. Raises `InvalidInput` (`usage`) for another scheme, a URL or `AWS_*` variables that
    cannot be used, and when the extra `s3` is not installed.
    """
    scheme, separator, _ = place.partition("://")
    if not separator:
        return local_store(Path(place).expanduser(), max_size_bytes=max_size_bytes)
    if scheme != "s3":
        raise InvalidInput(
            f"artifacts cannot be kept by {scheme!r}", code=Code.USAGE, advice="name s3://bucket/prefix or a folder"
        )
    try:
        from dagbok.projections.artifacts.s3.blobs import s3_store
    except ModuleNotFoundError as error:
        raise not_installed("artifacts on S3 need", error, "s3") from error
    return s3_store(place, max_size_bytes=max_size_bytes)
