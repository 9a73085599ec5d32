"""Several processes on one bucket, and processes that die, at the moments between two requests where it matters."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import pytest

from dagbok.events.errors import StorageFailed
from dagbok.projections.artifacts.orphans import GRACE_S, OrphanReport, collect_orphans
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.s3.blobs import S3Blobs
from dagbok.projections.artifacts.scope import Scope, blob_name
from tests.contract.artifact_storages import QUICK, S3Storage
from tests.support.s3_faults import meanwhile, says
from tests.support.s3_service import S3Service, running_s3_service, speak_to

ACME = Scope("acme", "docs")
DATA = b"forty-two pages of careful findings"
SHA = sha256(DATA).hexdigest()
NAME = blob_name(ACME, SHA)
OBJECT = f"{SHA}/1"
REMOVAL = "delete"


@pytest.fixture(scope="module")
def running() -> Iterator[S3Service]:
    with running_s3_service() as service:
        yield service


@pytest.fixture
def service(running: S3Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Service]:
    speak_to(monkeypatch, running)
    running.recovers()
    yield running
    running.recovers()


@pytest.fixture
def storage(service: S3Service) -> S3Storage:
    return S3Storage(service.new_bucket())


@pytest.fixture
def store(storage: S3Storage) -> ArtifactStore:
    return ArtifactStore(storage.blobs())


@pytest.fixture
def other(storage: S3Storage) -> ArtifactStore:
    """The store as another process has it."""
    return ArtifactStore(storage.blobs())


def collected(store: ArtifactStore, storage: S3Storage) -> OrphanReport:
    return collect_orphans(store, list, now_ms=storage.now_ms(), dry_run=False)


def old(store: ArtifactStore, storage: S3Storage) -> None:
    store.put(ACME, DATA)
    storage.pass_time()


# The collection of orphans


def test_what_is_put_just_before_its_removal_survives_it(
    storage: S3Storage, store: ArtifactStore, other: ArtifactStore, service: S3Service
) -> None:
    """The collector has seen that it is old, and its request to remove it is on the way."""
    old(store, storage)
    service.fails(meanwhile(lambda: other.put(ACME, DATA)), method="POST", within=REMOVAL, times=1)
    collected(store, storage)
    assert store.get(ACME, SHA, len(DATA)) == DATA


def test_what_is_collected_while_it_is_put_is_written_anew(
    storage: S3Storage, store: ArtifactStore, other: ArtifactStore, service: S3Service
) -> None:
    """`put` has found the right bytes and is about to have them copied."""
    old(store, storage)
    service.recovers()
    service.fails(meanwhile(lambda: collected(other, storage)), method="PUT", times=1)
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA
    assert len(service.seen("PUT")) == 2  # the copy that failed, and the bytes


def test_what_is_copied_before_and_told_after_the_collection_survives_it(
    storage: S3Storage, store: ArtifactStore, other: ArtifactStore, service: S3Service
) -> None:
    """`put` has its copy, and is about to remove the one that it took it from."""
    old(store, storage)
    service.fails(meanwhile(lambda: collected(other, storage)), method="POST", within=REMOVAL, times=1)
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA


def test_ages_are_those_of_the_service(storage: S3Storage, store: ArtifactStore) -> None:
    """A client whose clock is years off writes what is as young as anything else."""
    for clock_ms in (0, 4_000_000_000_000):
        off = ArtifactStore(S3Blobs(storage.place, QUICK, lambda clock_ms=clock_ms: clock_ms))  # type: ignore[misc]
        off.put(ACME, DATA)
        assert collected(store, storage).orphans == ()
        assert store.get(ACME, SHA, len(DATA)) == DATA
    storage.pass_time()
    assert len(collected(store, storage).orphans) == 1


def test_what_others_keep_in_the_bucket_is_neither_seen_nor_removed(storage: S3Storage, store: ArtifactStore) -> None:
    foreign = [
        "README",
        "team/README",
        f"team/artifacts/{NAME}",
        f"team/artifacts/{NAME}.bak",
        f"team/artifacts/{NAME}/notes.txt",
        f"team/artifacts/{NAME}/deeper/1700000000000-0123456789abcdef",
        f"team/artifacts-of-others/{NAME}/1700000000000-0123456789abcdef",
    ]
    for key in foreign:
        storage.bucket.put(key, b"somebody else's")
    assert list(store.list()) == []
    assert store.put(ACME, DATA).sha256 == SHA
    assert [blob.size_bytes for blob in store.list()] == [len(DATA)]
    storage.pass_time()
    assert len(collected(store, storage).orphans) == 1
    assert storage.bucket.keys == sorted(foreign)


def test_stores_below_different_prefixes_are_apart(storage: S3Storage, service: S3Service) -> None:
    places = ["", "team", "team/artifacts", "team/artifacts/acme"]
    stores = [ArtifactStore(S3Storage(storage.bucket, prefix).blobs()) for prefix in places]
    for number, store in enumerate(stores):
        store.put(ACME, b"%d" % number)
    for number, store in enumerate(stores):
        key = sha256(b"%d" % number).hexdigest()
        assert [found.sha256 for found in store.list(ACME)] == [key]
        assert [other.exists(ACME, key) for other in stores] == [other is store for other in stores]


# Readers and writers


def test_a_reader_follows_what_is_replaced_under_its_hands(
    storage: S3Storage, store: ArtifactStore, other: ArtifactStore, service: S3Service
) -> None:
    store.put(ACME, DATA)
    service.fails(meanwhile(lambda: other.put(ACME, DATA)), method="GET", within=OBJECT, times=1)
    assert store.get(ACME, SHA, len(DATA)) == DATA


def test_two_that_put_the_same_at_once_leave_one(
    storage: S3Storage, store: ArtifactStore, other: ArtifactStore, service: S3Service
) -> None:
    store.put(ACME, DATA)
    service.fails(meanwhile(lambda: other.put(ACME, DATA)), method="PUT", times=1)
    store.put(ACME, DATA)
    assert [storage.bucket.content(key) for key in storage.keys(NAME)] == [DATA]


def test_no_object_is_ever_written_again(storage: S3Storage, store: ArtifactStore, service: S3Service) -> None:
    """Whatever happens to an artifact: put, put again, damaged, repaired, removed, put."""
    store.put(ACME, DATA)
    store.put(ACME, DATA)
    storage.overwrite(NAME, b"damage")
    store.put(ACME, DATA)
    store.delete(ACME, SHA)
    store.put(ACME, DATA)
    written = [request.path for request in service.seen("PUT")]
    assert len(written) == 4
    assert len(set(written)) == 4


def test_a_new_artifact_costs_three_requests_and_a_read_two(store: ArtifactStore, service: S3Service) -> None:
    store.put(ACME, DATA)
    assert [seen.method for seen in service.requests] == ["GET", "GET", "PUT"]
    service.recovers()
    store.get(ACME, SHA, len(DATA))
    assert [seen.method for seen in service.requests] == ["GET", "GET"]


# Writers that die


def test_what_a_dead_writer_left_superseded_is_collected_and_the_artifact_stays(
    storage: S3Storage, store: ArtifactStore, service: S3Service
) -> None:
    old(store, storage)
    service.fails(says("503 Slow Down", "SlowDown"), method="POST", within=REMOVAL)
    with pytest.raises(StorageFailed):
        store.put(ACME, DATA)
    service.recovers()
    assert len(storage.keys(NAME)) == 2
    assert store.get(ACME, SHA, len(DATA)) == DATA

    before_ms = storage.now_ms() - int(GRACE_S * 1000)
    long_before_ms = before_ms - int(GRACE_S * 1000)
    assert store.blobs.unfinished(long_before_ms, remove=True) == 0
    assert store.blobs.unfinished(before_ms, remove=False) == 1
    assert len(storage.keys(NAME)) == 2
    report = collected(store, storage)
    assert (report.unfinished, report.orphans) == (1, ())
    assert [storage.bucket.content(key) for key in storage.keys(NAME)] == [DATA]


def test_the_right_bytes_count_although_the_damaged_ones_could_not_be_removed(
    storage: S3Storage, store: ArtifactStore, service: S3Service
) -> None:
    store.put(ACME, DATA)
    storage.overwrite(NAME, b"damage")
    service.fails(says("503 Slow Down", "SlowDown"), method="POST", within=REMOVAL)
    with pytest.raises(StorageFailed):
        store.put(ACME, DATA)
    service.recovers()
    assert store.get(ACME, SHA, len(DATA)) == DATA
