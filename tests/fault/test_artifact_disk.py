"""The disk of the local artifact store is full or breaks: one clear error, nothing half done, nothing lost."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from pathlib import Path
from types import ModuleType
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


def failing(number: int, function: Callable[..., Any], nth: int, failed: list[str]) -> Callable[..., Any]:
    """`function`, except that its nth call fails with this error number."""
    calls = 0

    def called(*args: object, **names: object) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            failed.append(function.__name__)
            raise OSError(number, os.strerror(number))
        return function(*args, **names)

    return called


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


CALLS = [(os, "mkdir"), (os, "open"), (os, "fchmod"), (os, "write"), (os, "fsync"), (os, "rename"), (fcntl, "flock")]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize(("module", "call"), CALLS, ids=[call for _, call in CALLS])
def test_any_failing_call_leaves_nothing_half_done_and_may_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, call: str, number: int
) -> None:
    """Each call of a kind fails once, the first, the second, until `put` makes no more of them."""
    for nth in count(1):
        storage, failed = LocalStorage(tmp_path / str(nth)), list[str]()
        store = ArtifactStore(storage.blobs())
        with monkeypatch.context() as patch:
            patch.setattr(module, call, failing(number, getattr(module, call), nth, failed))
            error = failure_of_put(store)
        if error is None:
            break
        assert os.strerror(number) in error.message
        for path in storage.files():
            assert path == storage.root / NAME
            assert path.read_bytes() == DATA
        store.put(ACME, DATA)
        assert store.get(ACME, SHA, len(DATA)) == DATA
    assert failed == []
    assert nth > 1


def failure_of_put(store: ArtifactStore) -> StorageFailed | None:
    try:
        store.put(ACME, DATA)
    except StorageFailed as error:
        return error
    return None


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
        patch.setattr(os, call, failing(errno.EIO, getattr(os, call), 1, []))
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
        patch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.put(ACME, DATA)
    assert storage.files() == []
