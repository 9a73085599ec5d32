"""Blobs as files in a folder of one machine: ``<root>/<tenant>/<project>/<2 hex digits>/<SHA-256>``.

Files have mode 0600 and folders 0700. Needs a POSIX system and a local file system (`flock`, atomic rename, fsync of
folders). Folders are never removed, and nothing is touched whose name the store would not give.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dagbok.events.errors import ArtifactDamaged, StorageFailed
from dagbok.events.log.clock import system_ms
from dagbok.projections.artifacts import files
from dagbok.projections.artifacts.blobs import BlobStat
from dagbok.projections.artifacts.folders import NO_FOLDER, Folders
from dagbok.projections.artifacts.port import MAX_SIZE_BYTES, ArtifactStore
from dagbok.projections.artifacts.scope import SHARD, is_folder_name

_NO_FILE: Final = NO_FOLDER | {errno.EISDIR, errno.ENXIO}
_SHARD_DEPTH: Final = 3


def local_store(root: Path | str, *, max_size_bytes: int = MAX_SIZE_BYTES) -> ArtifactStore:
    """An artifact store in a folder, made at the first write. Links in the path of `root` are resolved once, here."""
    return ArtifactStore(LocalBlobs(root), max_size_bytes=max_size_bytes)


class LocalBlobs:
    """Implements `Blobs` on a local file system. A link or a folder in the place of a file is `ArtifactDamaged`."""

    def __init__(self, root: Path | str) -> None:
        self._folders = Folders(root)

    def write(self, name: str, data: bytes) -> None:
        """See `Blobs.write`; `StorageFailed` when the disk is full, and nothing is left behind."""
        folder, _, file = name.rpartition("/")
        with _storage_errors(name), self._folders.made(folder) as opened:
            files.write_whole(opened, file, data)

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """See `Blobs.read`."""
        folder, _, file = name.rpartition("/")
        with _storage_errors(name):
            try:
                with self._folders.opened(folder) as opened:
                    return files.read_start(opened, file, limit_bytes)
            except FileNotFoundError:
                return None

    def refresh(self, name: str) -> bool:
        """See `Blobs.refresh`. Another process may have written the file and not yet synced it: this call does."""
        folder, _, file = name.rpartition("/")
        with _storage_errors(name):
            try:
                with self._folders.made(folder) as opened:
                    files.refresh(opened, file)
            except FileNotFoundError:
                return False
        return True

    def stat(self, name: str) -> BlobStat | None:
        """See `Blobs.stat`."""
        folder, _, file = name.rpartition("/")
        with _storage_errors(name):
            try:
                with self._folders.opened(folder) as opened:
                    return _blob_stat(name, files.file_stat(opened, file))
            except FileNotFoundError:
                return None

    def list(self, prefix: str = "") -> Iterator[BlobStat]:
        """See `Blobs.list`; links and folders in the place of a file are passed over."""
        return self._files(prefix)

    def remove(self, name: str, before_ms: int | None = None) -> bool:
        """See `Blobs.remove`."""
        folder, _, file = name.rpartition("/")
        with _storage_errors(name):
            try:
                with self._folders.opened(folder) as opened:
                    removed = files.remove(opened, file, before_ms)
                    if removed and before_ms is None:
                        os.fsync(opened)
                    return removed
            except FileNotFoundError:
                return False

    def now_ms(self) -> int:
        """See `Blobs.now_ms`: a local file system has the clock of its machine."""
        return system_ms()

    def unfinished(self, before_ms: int, *, remove: bool) -> int:
        """See `Blobs.unfinished`: temporary files last written before `before_ms`."""
        old = [found for found in self._files("") if _is_temporary(found) and found.modified_ms < before_ms]
        return sum(self.remove(found.name, before_ms) for found in old) if remove else len(old)

    def _files(self, path: str) -> Iterator[BlobStat]:
        parts = path.split("/") if path else []
        if len(parts) == _SHARD_DEPTH:
            with _storage_errors(path):
                found = self._folders.look(path, files.regular_files)
            yield from [_blob_stat(f"{path}/{name}", file) for name, file in found]
            return
        with _storage_errors(path):
            inner = self._folders.look(path, os.listdir)
        known = SHARD.fullmatch if len(parts) == _SHARD_DEPTH - 1 else is_folder_name
        for name in sorted(filter(known, inner)):
            yield from self._files("/".join([*parts, name]))


def _blob_stat(name: str, found: os.stat_result) -> BlobStat:
    return BlobStat(name, found.st_size, files.modified_ms(found))


def _is_temporary(found: BlobStat) -> bool:
    return files.TEMPORARY.fullmatch(found.name.rpartition("/")[2]) is not None


@contextmanager
def _storage_errors(name: str) -> Iterator[None]:
    """What the system says, in the words of the port."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_FILE:
            raise ArtifactDamaged(f"a link or a folder stands in the path of artifact {name}") from error
        raise StorageFailed(f"artifact {name or 'store'}: {error.strerror or error}") from error
