"""An S3 service, or the way to it, that fails: what is borne, what is reported, what is never taken for the bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from threading import Event

import pytest

from dagbok.events.codes import Code
from dagbok.events.errors import ArtifactDamaged, ArtifactNotFound, StorageFailed
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.s3.blobs import S3Blobs
from dagbok.projections.artifacts.s3.bucket import PARTS_AT_ONCE, PIECE_BYTES
from dagbok.projections.artifacts.s3.place import S3Place
from dagbok.projections.artifacts.scope import Scope, blob_name
from tests.contract.artifact_storages import QUICK, S3Storage
from tests.support.s3_faults import alters, answer_is_lost, answers_late, breaks_off, says
from tests.support.s3_service import Answer, S3Service, running_s3_service, speak_to

ACME = Scope("acme", "docs")
DATA = b"forty-two pages of careful findings" * 100
SHA = sha256(DATA).hexdigest()
NAME = blob_name(ACME, SHA)
OBJECT = f"{SHA}/1"
"""What the path of a request for the object has in it, and that of a listing has not."""
BIG = bytes(range(256)) * (PIECE_BYTES // 256 * 2 + 1024)
BIG_SHA = sha256(BIG).hexdigest()


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


# What is borne


@pytest.mark.parametrize("answer", [says("503 Slow Down", "SlowDown"), says("500 Oops", "InternalError")])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_a_service_that_is_busy_for_a_moment_is_asked_again(
    storage: S3Storage, store: ArtifactStore, service: S3Service, method: str, answer: Answer
) -> None:
    store.put(ACME, DATA)
    storage.overwrite(NAME, b"damaged, so that it is written and deleted once more")
    service.fails(answer, method=method, times=2)
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA
    assert len(storage.keys(NAME)) == 1


def test_a_body_that_breaks_off_is_read_on(store: ArtifactStore, service: S3Service) -> None:
    store.put(ACME, DATA)
    service.fails(breaks_off, method="GET", within=OBJECT, times=1)
    assert store.get(ACME, SHA, len(DATA)) == DATA
    assert len(service.seen("GET", OBJECT)) == 2


def test_a_write_whose_answer_is_lost_is_written_again_and_is_one_artifact(
    storage: S3Storage, store: ArtifactStore, service: S3Service
) -> None:
    service.fails(answer_is_lost, method="PUT", times=1)
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA
    assert len(storage.keys(NAME)) == 1


def test_a_refresh_that_the_service_made_and_did_not_tell_is_still_one_artifact(
    storage: S3Storage, store: ArtifactStore, service: S3Service
) -> None:
    store.put(ACME, DATA)
    service.fails(answer_is_lost, method="PUT", times=1)
    store.put(ACME, DATA)
    assert [storage.bucket.content(key) for key in storage.keys(NAME)] == [DATA]


# What is reported


def failed(store: ArtifactStore) -> StorageFailed:
    with pytest.raises(StorageFailed) as caught:
        store.put(ACME, DATA)
    error = caught.value
    assert (error.code, error.fault, error.retry) == (Code.STORAGE_FAILED, "operator", True)
    assert "\n" not in str(error)
    assert error.__cause__ is not None
    return error


@pytest.mark.parametrize(
    ("answer", "said", "advised"),
    [
        (says("503 Slow Down", "SlowDown"), "503 SlowDown", "service is up"),
        (says("403 Forbidden", "InvalidAccessKeyId"), "403 InvalidAccessKeyId", "AWS_SECRET_ACCESS_KEY"),
        (says("403 Forbidden", "SignatureDoesNotMatch"), "403 SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
        (says("401 Unauthorized"), "401", "AWS_SECRET_ACCESS_KEY"),
        (says("403 Forbidden", "AccessDenied"), "403 AccessDenied", "s3:ListBucket"),
        (says("403 Forbidden", "RequestTimeTooSkewed"), "403 RequestTimeTooSkewed", "clock"),
        (says("404 Not Found", "NoSuchBucket"), "404 NoSuchBucket", "create the bucket"),
        (says("301 Moved Permanently", "PermanentRedirect"), "region", "AWS_REGION"),
        (says("400 Bad Request", "AuthorizationHeaderMalformed"), "AuthorizationHeaderMalformed", "AWS_REGION"),
        (says("501 Not Implemented", "NotImplemented"), "501 NotImplemented", "service is up"),
        (says("400 Bad Request", "InvalidRequest"), "400 InvalidRequest", "service's own log"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_service_that_keeps_failing_is_reported_in_one_line_with_advice(
    store: ArtifactStore, service: S3Service, method: str, answer: Answer, said: str, advised: str
) -> None:
    service.fails(answer, method=method)
    error = failed(store)
    assert said in error.message
    assert advised in error.advice
    assert "tester" not in str(error)
    service.recovers()
    store.put(ACME, DATA)
    assert store.get(ACME, SHA, len(DATA)) == DATA


def test_answers_that_keep_breaking_off_are_reported(store: ArtifactStore, service: S3Service) -> None:
    service.fails(breaks_off, method="GET")
    assert "service is up" in failed(store).advice


def test_no_service_at_the_endpoint(storage: S3Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    error = failed(ArtifactStore(storage.blobs()))
    assert "Connection refused" in error.message
    assert "AWS_ENDPOINT_URL" in error.advice


def test_a_bucket_that_is_missing_is_never_taken_for_an_artifact_that_is(service: S3Service) -> None:
    store = ArtifactStore(S3Blobs(S3Place("no-such-bucket"), QUICK))
    assert "create the bucket no-such-bucket" in failed(store).advice
    for look in (lambda: store.get(ACME, SHA, 1), lambda: store.exists(ACME, SHA), lambda: list(store.list())):
        with pytest.raises(StorageFailed, match="NoSuchBucket"):
            look()
    with pytest.raises(StorageFailed, match="NoSuchBucket"):
        store.delete(ACME, SHA)


def test_a_bucket_that_goes_between_two_requests_is_a_failure_too(store: ArtifactStore, service: S3Service) -> None:
    store.put(ACME, DATA)
    service.fails(says("404 Not Found", "NoSuchBucket"), method="GET", within=OBJECT)
    with pytest.raises(StorageFailed, match="NoSuchBucket"):
        store.get(ACME, SHA, len(DATA))


def test_what_is_listed_and_never_found_is_no_endless_search(store: ArtifactStore, service: S3Service) -> None:
    store.put(ACME, DATA)
    service.fails(says("404 Not Found", "NoSuchKey"), method="GET", within=OBJECT)
    with pytest.raises(StorageFailed, match="replaced 10 times"):
        store.get(ACME, SHA, len(DATA))


def test_without_credentials_it_says_which_to_set(storage: S3Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service that hands out credentials to machines is not there either."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    assert "AWS_ACCESS_KEY_ID" in failed(ArtifactStore(storage.blobs())).advice


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_service_that_hangs_is_asked_again_and_given_up(storage: S3Storage, service: S3Service, method: str) -> None:
    release = Event()
    service.fails(answers_late(release), method=method)
    hasty = ArtifactStore(S3Blobs(storage.place, replace(QUICK, request_s=0.2, retries=1)))
    assert "did not answer in time" in failed(hasty).message
    assert len(service.seen(method)) == 2
    release.set()


async def test_a_waiting_request_holds_neither_the_interpreter_nor_the_loop(
    store: ArtifactStore, service: S3Service
) -> None:
    store.put(ACME, DATA)
    release, arrived = Event(), Event()
    service.fails(answers_late(release, arrived), method="GET", within=OBJECT)
    reading = asyncio.create_task(asyncio.to_thread(store.get, ACME, SHA, len(DATA)))
    assert await asyncio.to_thread(arrived.wait, 30)
    assert not reading.done()
    release.set()
    assert await reading == DATA


# What is never taken for the bytes


@pytest.mark.parametrize(
    "change",
    [lambda body: body[:-1], lambda body: b"F" + body[1:], lambda body: body + b"!", lambda body: b""],
    ids=["shorter", "altered", "longer", "emptied"],
)
def test_other_bytes_on_the_way_are_never_returned(
    store: ArtifactStore, service: S3Service, change: Callable[[bytes], bytes]
) -> None:
    """A body of another length than the one that was asked for is refused by the client already."""
    store.put(ACME, DATA)
    service.fails(alters(change), method="GET", within=OBJECT)
    with pytest.raises((ArtifactDamaged, StorageFailed)):
        store.get(ACME, SHA, len(DATA))


def test_a_write_that_fails_leaves_what_was_there(storage: S3Storage, store: ArtifactStore, service: S3Service) -> None:
    store.put(ACME, DATA)
    service.fails(says("503 Slow Down", "SlowDown"), method="PUT")
    with pytest.raises(StorageFailed):
        storage.blobs().write(NAME, b"other bytes")
    service.recovers()
    assert store.get(ACME, SHA, len(DATA)) == DATA


# Large ones


def test_a_large_artifact_goes_up_in_parts_and_comes_down_in_pieces(store: ArtifactStore, service: S3Service) -> None:
    store.put(ACME, BIG)
    sizes = sorted(part.size_bytes for part in service.seen("PUT", "partNumber"))
    assert sizes == [len(BIG) - 2 * PIECE_BYTES, PIECE_BYTES, PIECE_BYTES]
    assert store.get(ACME, BIG_SHA, len(BIG)) == BIG
    assert len(service.seen("GET", f"{BIG_SHA}/1")) == 3
    assert PARTS_AT_ONCE * PIECE_BYTES == 16 * 1024 * 1024


def test_a_part_that_fails_for_a_moment_is_sent_again(store: ArtifactStore, service: S3Service) -> None:
    service.fails(says("503 Slow Down", "SlowDown"), method="PUT", within="partNumber=2", times=2)
    store.put(ACME, BIG)
    assert store.get(ACME, BIG_SHA, len(BIG)) == BIG


def test_parts_that_keep_failing_leave_nothing_behind(
    storage: S3Storage, store: ArtifactStore, service: S3Service
) -> None:
    service.fails(says("503 Slow Down", "SlowDown"), method="PUT", within="partNumber=2")
    with pytest.raises(StorageFailed):
        store.put(ACME, BIG)
    assert storage.bucket.uploads == 0
    assert storage.keys() == []
    with pytest.raises(ArtifactNotFound):
        store.get(ACME, BIG_SHA, len(BIG))


def test_a_piece_that_breaks_off_is_read_on(store: ArtifactStore, service: S3Service) -> None:
    store.put(ACME, BIG)
    service.fails(breaks_off, method="GET", within=f"{BIG_SHA}/1", times=2)
    assert store.get(ACME, BIG_SHA, len(BIG)) == BIG
