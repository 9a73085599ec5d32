"""What the artifact tests run on: an adapter, its clock, and a hand that reaches behind the store's back."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from dagbok.events.log.clock import system_ms
from dagbok.projections.artifacts.blobs import Blobs
from dagbok.projections.artifacts.local import LocalBlobs
from dagbok.projections.artifacts.memory import MemoryBlobs
from dagbok.projections.artifacts.orphans import GRACE_S
from dagbok.projections.artifacts.s3.blobs import S3Blobs
from dagbok.projections.artifacts.s3.client import S3Patience
from dagbok.projections.artifacts.s3.place import S3Place
from tests.support.s3_service import S3Bucket

LONGER_THAN_GRACE_S: Final = GRACE_S + 3600
QUICK: Final = S3Patience(
    connect_s=5.0, request_s=5.0, retries=3, retry_s=5.0, first_pause_s=0.01, longest_pause_s=0.05
)
"""Patience of a client whose service is in this process."""


class Storage(Protocol):
    """What a test of an adapter provides."""

    def blobs(self) -> Blobs:
        """The adapter; each call may open it anew, as another process would."""
        ...

    def now_ms(self) -> int:
        """The storage's clock."""
        ...

    def pass_time(self, seconds: float = LONGER_THAN_GRACE_S) -> None:
        """Make everything that is stored so much older."""
        ...

    def overwrite(self, name: str, data: bytes) -> None:
        """Put bytes under a name without the store's knowledge."""
        ...


class MemoryStorage:
    """One dictionary and a clock that can be moved."""

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._blobs = MemoryBlobs(self.now_ms)

    def blobs(self) -> Blobs:
        return self._blobs

    def now_ms(self) -> int:
        return system_ms() + self._ahead_ms

    def pass_time(self, seconds: float = LONGER_THAN_GRACE_S) -> None:
        self._ahead_ms += int(seconds * 1000)

    def overwrite(self, name: str, data: bytes) -> None:
        self._blobs.write(name, data)


class LocalStorage:
    """A folder; time passes by moving the times of modification back."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def blobs(self) -> Blobs:
        return LocalBlobs(self.root)

    def now_ms(self) -> int:
        return system_ms()

    def pass_time(self, seconds: float = LONGER_THAN_GRACE_S) -> None:
        then = time.time() - seconds
        for path in self.files():
            with suppress(FileNotFoundError):
                os.utime(path, (then, then), follow_symlinks=False)

    def overwrite(self, name: str, data: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def files(self) -> list[Path]:
        """Everything below the root that is no folder."""
        return sorted(path for path in self.root.rglob("*") if path.is_symlink() or not path.is_dir())


class S3Storage:
    """A bucket of the service below; time passes by moving the times of modification back."""

    def __init__(self, bucket: S3Bucket, prefix: str = "team/artifacts") -> None:
        self.bucket, self.prefix = bucket, prefix

    @property
    def place(self) -> S3Place:
        return S3Place(self.bucket.name, self.prefix)

    def blobs(self) -> S3Blobs:
        return S3Blobs(self.place, QUICK)

    def now_ms(self) -> int:
        return system_ms()

    def pass_time(self, seconds: float = LONGER_THAN_GRACE_S) -> None:
        self.bucket.grow_older(seconds)

    def overwrite(self, name: str, data: bytes) -> None:
        for key in self.keys(name) or [f"{self.prefix}/{name}/1700000000000-0123456789abcdef"]:
            self.bucket.put(key, data)

    def keys(self, name: str = "") -> list[str]:
        """The keys of everything that is stored, or of one blob."""
        below = f"{self.prefix}/{name}/" if name else f"{self.prefix}/"
        return [key for key in self.bucket.keys if key.startswith(below)]
