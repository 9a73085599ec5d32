"""The disk of the local artifact store is full or breaks: one clear error, nothing half done, nothing lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dagbok.events.codes import Code
from dagbok.events.errors import StorageFailed
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import Scope, blob_name
from tests.contract.artifact_storages import LocalStorage

REPOSITORY = Path(__file__).parents[2]
ACME = Scope("acme", "docs")
DATA = b"0123456789" * 1000
SHA = sha256(DATA).hexdigest()
NAME = blob_name(ACME, SHA)

UNDER_A_FILE_SIZE_LIMIT = """
import resource, sys
from dagbok.events.errors import StorageFailed
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import Scope

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    local_store(sys.argv[1]).put(Scope("acme", "docs"), b"0123456789" * 1000)
except StorageFailed as error:
    print(error)
"""


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "artifacts")


@pytest.fixture
def store(storage: LocalStorage) -> ArtifactStore:
    return ArtifactStore(storage.blobs())


def failing(number: int) -> Callable[..., Any]:
    def fail(*args: object, **names: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def full_after_half(write: Callable[[int, memoryview], int]) -> Callable[[int, memoryview], int]:
    """The system writes what still fits and fails the next call."""
    calls = 0

    def written(descriptor: int, data: memoryview) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: len(data) // 2])

    return written


def test_full_in_the_middle_of_a_file(
    storage: LocalStorage, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_after_half(os.write))
        with pytest.raises(StorageFailed, match="No space left") as failed:
            store.put(ACME, DATA)
    assert failed.value.code is Code.STORAGE_FAILED
    assert failed.value.retry
    assert storage.files() == []
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA


@pytest.mark.parametrize("call", ["mkdir", "open", "write", "fsync", "rename", "fchmod"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES])
def test_any_failing_call_leaves_nothing_and_may_be_repeated(
    storage: LocalStorage, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(number))
        with pytest.raises(StorageFailed, match=os.strerror(number)):
            store.put(ACME, DATA)
    assert storage.files() == []
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA


def test_a_failed_repair_keeps_what_was_there(
    storage: LocalStorage, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(ACME, DATA)
    storage.overwrite(NAME, DATA[:-1])
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_after_half(os.write))
        with pytest.raises(StorageFailed):
            store.put(ACME, DATA)
    assert (storage.root / NAME).read_bytes() == DATA[:-1]
    assert storage.files() == [storage.root / NAME]


@pytest.mark.parametrize("call", ["open", "stat", "listdir"])
def test_a_disk_that_cannot_be_read_is_no_absent_artifact(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    uses: dict[str, Callable[[], object]] = {
        "open": lambda: store.get(ACME, SHA, len(DATA)),
        "stat": lambda: store.exists(ACME, SHA),
        "listdir": lambda: list(store.list()),
    }
    store.put(ACME, DATA)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(errno.EIO))
        with pytest.raises(StorageFailed):
            uses[call]()


def test_the_system_itself_refuses_to_write_on(storage: LocalStorage) -> None:
    """Not our stand-in: the kernel stops the file at 4096 bytes."""
    command = [sys.executable, "-c", UNDER_A_FILE_SIZE_LIMIT, str(storage.root)]
    told = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("DAGBOK-STORAGE-FAILED: ")
    assert len(told.stdout.splitlines()) == 1
    assert storage.files() == []


def test_an_interrupted_put_leaves_nothing(
    storage: LocalStorage, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.put(ACME, DATA)
    assert storage.files() == []
