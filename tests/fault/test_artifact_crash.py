"""A process that stores artifacts is killed by ``kill -9``. Under a final name there is a whole artifact or nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from dagbok.projections.artifacts.orphans import collect_orphans
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import Scope, blob_name, is_blob_name
from tests.contract.artifact_storages import LocalStorage
from tests.support.scale import scale

REPOSITORY = Path(__file__).parents[2]
ACME = Scope("acme", "docs")
DATA = bytes(range(256)) * 2048
SHA = sha256(DATA).hexdigest()
NAME = blob_name(ACME, SHA)

DIE_AT_A_SEAM = """
import os, signal, sys
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import Scope

def die(*args, **names):
    os.kill(os.getpid(), signal.SIGKILL)

def after(function):
    def called(*args, **names):
        function(*args, **names)
        die()
    return called

def half(write):
    def called(descriptor, data):
        write(descriptor, data[: len(data) // 2])
        die()
    return called

root, seam = sys.argv[1:]
if seam == "folder made": os.mkdir = after(os.mkdir)
if seam == "half written": os.write = half(os.write)
if seam == "written, not synced": os.write = after(os.write)
if seam == "synced, not renamed": os.rename = die
if seam == "renamed, folder not synced": os.rename = after(os.rename)
local_store(root).put(Scope("acme", "docs"), bytes(range(256)) * 2048)
"""

PUT_FOR_EVER = """
import sys
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import Scope

store = local_store(sys.argv[1])
number = 0
while True:
    number += 1
    key = store.put(Scope("acme", "docs"), b"%d " % number * 500_000)
    print(key.sha256, key.size_bytes, flush=True)
"""


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "artifacts")


@pytest.mark.parametrize(
    ("seam", "temporary", "final"),
    [
        ("folder made", 0, False),
        ("half written", 1, False),
        ("written, not synced", 1, False),
        ("synced, not renamed", 1, False),
        ("renamed, folder not synced", 0, True),
    ],
)
def test_killed_at_a_seam(storage: LocalStorage, seam: str, temporary: int, final: bool) -> None:
    died = subprocess.run([sys.executable, "-c", DIE_AT_A_SEAM, str(storage.root), seam], cwd=REPOSITORY)
    assert died.returncode == -signal.SIGKILL
    assert len([path for path in storage.files() if path.name.startswith(".tmp-")]) == temporary
    assert (storage.root / NAME).exists() == final

    store = ArtifactStore(storage.blobs())
    if final:
        assert store.get(ACME, SHA, len(DATA)) == DATA
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA

    roots = [(ACME, SHA)]
    fresh = collect_orphans(store, lambda: roots, now_ms=storage.now_ms(), dry_run=False)
    assert fresh.unfinished == 0
    assert len(storage.files()) == 1 + temporary
    storage.pass_time()
    assert collect_orphans(store, lambda: roots, now_ms=storage.now_ms()).unfinished == temporary
    assert len(storage.files()) == 1 + temporary
    assert collect_orphans(store, lambda: roots, now_ms=storage.now_ms(), dry_run=False).unfinished == temporary
    assert storage.files() == [storage.root / NAME]


def test_only_leftovers_of_the_store_are_removed(storage: LocalStorage) -> None:
    """Somebody else's temporary files may be called alike, in folders that the store would not make."""
    temporary = ".tmp-" + "0" * 32
    foreign = ["", "acme/", "acme/docs/", "acme/docs/zz/", "Acme/docs/ab/", "acme/.docs/ab/", "acme/docs/ab/cd/"]
    for folder in ["acme/docs/ab/", *foreign]:
        storage.overwrite(folder + temporary, b"half")
    storage.pass_time()
    report = collect_orphans(ArtifactStore(storage.blobs()), list, now_ms=storage.now_ms(), dry_run=False)
    assert report.unfinished == 1
    assert storage.files() == sorted(storage.root / (folder + temporary) for folder in foreign)


def test_killed_anywhere(storage: LocalStorage) -> None:
    """What `put` answered for is there, and nothing under a final name is anything but what its name says."""
    for acknowledged in range(scale(3, 30)):
        keys = put_until(storage, acknowledged)
        store = ArtifactStore(storage.blobs())
        for sha256_hex, size_bytes in keys:
            assert len(store.get(ACME, sha256_hex, size_bytes)) == size_bytes
        for path in storage.files():
            if is_blob_name(str(path.relative_to(storage.root))):
                assert sha256(path.read_bytes()).hexdigest() == path.name


def put_until(storage: LocalStorage, acknowledged: int) -> list[tuple[str, int]]:
    """Start a writer, kill it after so many answers, and return the keys it answered with."""
    command = [sys.executable, "-c", PUT_FOR_EVER, str(storage.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as writer:
        assert writer.stdout
        lines = [writer.stdout.readline() for _ in range(acknowledged + 1)]
        writer.kill()
        lines += [line for line in writer.stdout if line.endswith("\n")]
    return [(sha256_hex, int(size)) for sha256_hex, size in map(str.split, lines)]
