"""A link, a folder or a device stands where the local artifact store keeps its files. It is noticed, never followed."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from dagbok.events.errors import ArtifactDamaged, StorageFailed
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.orphans import collect_orphans
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import Scope, blob_name
from tests.contract.artifact_storages import LocalStorage

ACME = Scope("acme", "docs")
DATA = b"the bytes that were stored"
SHA = sha256(DATA).hexdigest()
NAME = blob_name(ACME, SHA)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "artifacts")


@pytest.fixture
def store(storage: LocalStorage) -> ArtifactStore:
    store = ArtifactStore(storage.blobs())
    store.put(ACME, DATA)
    return store


def link_to_same_bytes(path: Path) -> None:
    outside = path.parents[4] / "outside"
    outside.write_bytes(DATA)
    path.symlink_to(outside)


def dangling_link(path: Path) -> None:
    path.symlink_to(path.parents[4] / "nowhere")


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening_socket(path: Path) -> None:
    # The name is longer than a socket address may be, so it is bound by a short relative one.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("s")
    finally:
        os.chdir(here)
    (path.parent / "s").rename(path)


INTRUDERS = [link_to_same_bytes, dangling_link, folder, pipe, listening_socket]


@pytest.mark.parametrize("intruder", INTRUDERS)
def test_only_a_regular_file_is_an_artifact(
    storage: LocalStorage, store: ArtifactStore, intruder: Callable[[Path], None]
) -> None:
    path = storage.root / NAME
    path.unlink()
    intruder(path)
    before = path.lstat()

    for use in (
        lambda: store.get(ACME, SHA, len(DATA)),
        lambda: store.put(ACME, DATA),
        lambda: store.stat(ACME, SHA),
        lambda: store.exists(ACME, SHA),
        lambda: store.delete(ACME, SHA),
    ):
        with pytest.raises(ArtifactDamaged):
            use()
    assert list(store.list()) == []
    storage.pass_time()
    assert collect_orphans(store, list, now_ms=storage.now_ms(), dry_run=False).orphans == ()
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert [path.name for path in storage.files() if path.name.startswith(".tmp-")] == []


@pytest.mark.parametrize("depth", [1, 2, 3], ids=["tenant", "project", "shard"])
def test_a_linked_folder_is_not_followed(storage: LocalStorage, store: ArtifactStore, depth: int) -> None:
    """The link leads to a good copy, so that only the check can tell."""
    inside = storage.root.joinpath(*NAME.split("/")[:depth])
    outside = storage.root.parent / "outside"
    shutil.move(inside, outside)
    inside.symlink_to(outside)
    copies = sorted(outside.rglob("*"))

    for use in (
        lambda: store.get(ACME, SHA, len(DATA)),
        lambda: store.put(ACME, DATA),
        lambda: store.exists(ACME, SHA),
        lambda: store.delete(ACME, SHA),
    ):
        with pytest.raises(ArtifactDamaged):
            use()
    assert list(store.list()) == []
    storage.pass_time()
    assert collect_orphans(store, list, now_ms=storage.now_ms(), dry_run=False).orphans == ()
    assert sorted(outside.rglob("*")) == copies


@pytest.mark.parametrize("depth", [1, 2, 3], ids=["tenant", "project", "shard"])
def test_a_file_in_the_place_of_a_folder_is_damage(storage: LocalStorage, store: ArtifactStore, depth: int) -> None:
    inside = storage.root.joinpath(*NAME.split("/")[:depth])
    shutil.rmtree(inside)
    inside.write_bytes(b"no folder")
    with pytest.raises(ArtifactDamaged):
        store.get(ACME, SHA, len(DATA))
    with pytest.raises(ArtifactDamaged):
        store.put(ACME, DATA)
    assert inside.read_bytes() == b"no folder"
    assert list(store.list()) == []


def test_the_root_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    store = local_store(tmp_path / "link" / "artifacts")
    store.put(ACME, DATA)
    assert (tmp_path / "disk" / "artifacts" / NAME).read_bytes() == DATA


def test_a_root_that_became_a_link_is_refused(storage: LocalStorage, store: ArtifactStore) -> None:
    elsewhere = storage.root.with_name("elsewhere")
    storage.root.rename(elsewhere)
    storage.root.symlink_to(elsewhere)
    with pytest.raises(StorageFailed, match="not a folder"):
        store.get(ACME, SHA, len(DATA))
    with pytest.raises(StorageFailed, match="not a folder"):
        store.put(ACME, DATA)


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageFailed):
            local_store(root).put(ACME, DATA)


def test_a_root_is_made_anew_when_somebody_removed_it(storage: LocalStorage, store: ArtifactStore) -> None:
    shutil.rmtree(storage.root)
    assert not store.exists(ACME, SHA)
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA


def test_a_relative_root_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = local_store("artifacts")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    store.put(ACME, DATA)
    assert (tmp_path / "artifacts" / NAME).is_file()
