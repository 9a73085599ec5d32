"""The order of system calls in the local artifact store, on which durability and the safety of orphans rest."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Event

import pytest

from dagbok.events.errors import ArtifactNotFound
from dagbok.projections.artifacts.orphans import collect_orphans
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import Scope, blob_name
from tests.contract.artifact_storages import LocalStorage
from tests.support.scale import scale

ACME = Scope("acme", "docs")
DATA = b"0123456789" * 100_000
SHA = sha256(DATA).hexdigest()
NAME = blob_name(ACME, SHA)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "data" / "artifacts")


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """Calls in order: what was called, and the inode it was called on (of the folder for a rename)."""
    calls: list[tuple[str, int]] = []
    fsync, rename, utime = os.fsync, os.rename, os.utime

    def record_fsync(descriptor: int) -> None:
        calls.append(("fsync", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def record_rename(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        calls.append(("rename", os.fstat(dst_dir_fd).st_ino))
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    def record_utime(descriptor: int) -> None:
        calls.append(("utime", os.fstat(descriptor).st_ino))
        utime(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", record_fsync)
        patch.setattr(os, "rename", record_rename)
        patch.setattr(os, "utime", record_utime)
        yield calls


def folders_up_from(path: Path, top: Path) -> list[int]:
    """Inodes of the folders that hold an entry of the way from `top` to `path`, the nearest first."""
    return [parent.stat().st_ino for parent in path.parents if parent.is_relative_to(top)]


def test_a_new_artifact_is_synced_before_it_has_its_name_and_every_entry_afterwards(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded(monkeypatch) as calls:
        ArtifactStore(storage.blobs()).put(ACME, DATA)
    path = storage.root / NAME
    shard, *parents = folders_up_from(path, tmp_path)
    assert calls[-3:] == [("fsync", path.stat().st_ino), ("rename", shard), ("fsync", shard)]
    assert set(calls[:-3]) == {("fsync", parent) for parent in parents}


def test_a_second_artifact_of_a_folder_costs_two_syncs(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArtifactStore(storage.blobs())
    store.put(ACME, DATA)
    store.delete(ACME, SHA)
    with recorded(monkeypatch) as calls:
        store.put(ACME, DATA)
    assert [call for call, _ in calls] == ["fsync", "rename", "fsync"]


def test_a_folder_that_was_removed_and_made_again_is_synced_again(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(storage.blobs())
    store.put(ACME, DATA)
    shutil.rmtree(storage.root / "acme")
    with recorded(monkeypatch) as calls:
        store.put(ACME, DATA)
    _, *parents = folders_up_from(storage.root / NAME, storage.root)
    assert set(calls[:-3]) == {("fsync", parent) for parent in parents}


def test_an_artifact_of_another_process_is_synced_before_it_is_relied_on(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer may have been killed between rename and sync, in a folder that it had just made."""
    ArtifactStore(storage.blobs()).put(ACME, DATA)
    with recorded(monkeypatch) as calls:
        ArtifactStore(storage.blobs()).put(ACME, DATA)
    path = storage.root / NAME
    shard, *parents = folders_up_from(path, storage.root.parent)
    file = path.stat().st_ino
    assert calls[-3:] == [("utime", file), ("fsync", file), ("fsync", shard)]
    assert set(calls[:-3]) == {("fsync", parent) for parent in parents}


def test_a_deleted_artifact_stays_deleted(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArtifactStore(storage.blobs())
    store.put(ACME, DATA)
    with recorded(monkeypatch) as calls:
        store.delete(ACME, SHA)
    assert calls == [("fsync", (storage.root / NAME).parent.stat().st_ino)]


def excluded(folder: Path, kind: int) -> bool:
    """Does somebody's lock keep this kind of lock from the folder now?"""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def asking(function: Callable[..., None], question: Callable[[], bool], answers: list[bool]) -> Callable[..., None]:
    def asked(*args: object, **names: object) -> None:
        answers.append(question())
        function(*args, **names)

    return asked


@pytest.mark.parametrize("call", ["rename", "utime"])
def test_no_collector_removes_while_a_writer_makes_an_artifact_young(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store = ArtifactStore(storage.blobs())
    if call == "utime":
        store.put(ACME, DATA)
    shard, answers = (storage.root / NAME).parent, list[bool]()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, asking(getattr(os, call), lambda: excluded(shard, fcntl.LOCK_EX), answers))
        store.put(ACME, DATA)
    assert answers == [True]
    assert not excluded(shard, fcntl.LOCK_EX)


def test_no_writer_makes_an_artifact_young_between_judgement_and_removal(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(storage.blobs())
    store.put(ACME, DATA)
    storage.pass_time()
    shard, answers = (storage.root / NAME).parent, list[bool]()
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", asking(os.unlink, lambda: excluded(shard, fcntl.LOCK_SH), answers))
        collect_orphans(store, list, now_ms=storage.now_ms(), dry_run=False)
    assert answers == [True]
    assert not store.exists(ACME, SHA)


def test_an_artifact_that_vanishes_before_it_is_young_is_written_anew(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector takes it after `put` compared the bytes."""
    store = ArtifactStore(storage.blobs())
    store.put(ACME, DATA)
    storage.pass_time()
    refresh = store.blobs.refresh

    def collected_first(name: str) -> bool:
        assert len(collect_orphans(store, list, now_ms=storage.now_ms(), dry_run=False).orphans) == 1
        return refresh(name)

    with monkeypatch.context() as patch:
        patch.setattr(store.blobs, "refresh", collected_first)
        store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA


def test_a_reader_sees_a_whole_artifact_or_none(storage: LocalStorage) -> None:
    store, done, seen = ArtifactStore(storage.blobs()), Event(), Event()
    store.put(ACME, DATA)

    def read() -> None:
        while not done.is_set():
            try:
                assert store.get(ACME, SHA, len(DATA)) == DATA
                seen.set()
            except ArtifactNotFound:
                continue

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            assert seen.wait(60)
            for _ in range(scale(100, 2000)):
                store.delete(ACME, SHA)
                store.put(ACME, DATA)
        finally:
            done.set()
        reader.result()
