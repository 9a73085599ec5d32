"""Processes that use a bucket: one that is killed in the middle of an upload, and what a large artifact takes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from threading import Event

import pytest

from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.s3.bucket import PARTS_AT_ONCE, PIECE_BYTES
from dagbok.projections.artifacts.scope import Scope
from tests.contract.artifact_storages import S3Storage
from tests.support.s3_faults import answers_late
from tests.support.s3_service import S3Service, running_s3_service, speak_to

ACME = Scope("acme", "docs")
MIB = 1024 * 1024

PUT = """
import sys
from dagbok.projections.artifacts.s3.blobs import s3_store
from dagbok.projections.artifacts.scope import Scope
s3_store(sys.argv[1]).put(Scope("acme", "docs"), bytes(range(256)) * int(sys.argv[2]))
"""

PEAKS = """
import sys
from dagbok.projections.artifacts.s3.blobs import s3_store
from dagbok.projections.artifacts.scope import Scope

def peak_bytes():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

store, acme = s3_store(sys.argv[1], max_size_bytes=2**30), Scope("acme", "docs")
small = store.put(acme, b"so that everything is loaded")
store.get(acme, small.sha256, small.size_bytes)
data = bytes(range(256)) * int(sys.argv[2])
start = peak_bytes()
key = store.put(acme, data)
written = peak_bytes()
size_bytes = len(data)
del data
store.get(acme, key.sha256, key.size_bytes)
print(written - start, peak_bytes() - written)
"""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Service]:
    with running_s3_service() as service:
        speak_to(monkeypatch, service)
        yield service


@pytest.fixture
def storage(service: S3Service) -> S3Storage:
    return S3Storage(service.new_bucket())


def started(program: str, storage: S3Storage, size_bytes: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, str(storage.place), str(size_bytes // 256)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


@pytest.mark.parametrize("during", ["partNumber=2", "uploads="], ids=["a part", "its beginning"])
def test_a_writer_killed_in_the_middle_leaves_no_artifact_and_the_next_one_writes_it(
    storage: S3Storage, service: S3Service, during: str
) -> None:
    size_bytes = 3 * PIECE_BYTES
    arrived, release = Event(), Event()
    method = "PUT" if during.startswith("part") else "POST"
    service.fails(answers_late(release, arrived), method=method, within=during, times=1)
    with started(PUT, storage, size_bytes) as victim:
        assert arrived.wait(60)
        victim.kill()
    release.set()
    store = ArtifactStore(storage.blobs())
    assert list(store.list()) == []

    data = bytes(range(256)) * (size_bytes // 256)
    store.put(ACME, data)
    assert store.get(ACME, sha256(data).hexdigest(), len(data)) == data
    assert len(storage.keys()) == 1


def test_a_large_artifact_takes_little_memory_besides_itself(storage: S3Storage) -> None:
    size_bytes = 96 * MIB - 4096
    with started(PEAKS, storage, size_bytes) as process:
        told, _ = process.communicate(timeout=120)
    writing_bytes, reading_bytes = map(int, told.split())
    assert writing_bytes < PARTS_AT_ONCE * PIECE_BYTES + 16 * MIB
    assert reading_bytes < 2 * PIECE_BYTES + 16 * MIB  # the artifact that was written was in memory too, and has gone
