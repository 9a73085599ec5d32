"""Where artifacts are kept: the word that says it, and what is refused before anything is sent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dagbok.agents.hosting.artifacts import open_artifacts
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.projections.artifacts.s3.client import connect
from dagbok.projections.artifacts.s3.objects import Written, new_key, newest
from dagbok.projections.artifacts.s3.place import S3Place
from dagbok.projections.artifacts.scope import Scope


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT_URL_S3", "ENDPOINT_URL", "ENDPOINT", "ALLOW_HTTP", "CONDITIONAL_PUT"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://bucket", S3Place("bucket")),
        ("s3://bucket/", S3Place("bucket")),
        ("s3://bucket/team", S3Place("bucket", "team")),
        ("s3://my.bucket-7/Team_A/artifacts-2.0/", S3Place("my.bucket-7", "Team_A/artifacts-2.0")),
    ],
)
def test_a_url_names_a_bucket_and_a_prefix(url: str, place: S3Place) -> None:
    assert S3Place.parse(url) == place
    assert S3Place.parse(str(place)) == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "bucket/prefix",
        "s3:bucket",
        "s3://",
        "s3:///prefix",
        "https://bucket/prefix",
        "s3://bucket:9000/prefix",
        "s3://bucket/prefix?region=eu-north-1",
        "s3://bucket/prefix#part",
        "s3://Bucket/prefix",
        "s3://b/prefix",
        "s3://bucket/../prefix",
        "s3://bucket/.hidden",
        "s3://bucket/a//b",
        "s3://bucket/a b",
        "s3://bucket/a%20b",
        "s3://bucket/é",
        "s3://[bucket/prefix",
        "s3://bucket/" + "p" * 513,
    ],
)
def test_what_is_no_place_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        S3Place.parse(url)
    assert caught.value.code is Code.USAGE


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidInput) as caught:
        S3Place.parse("s3://tester:not-a-secret@bucket/prefix")
    assert "not-a-secret" not in str(caught.value)
    assert "AWS_SECRET_ACCESS_KEY" in caught.value.advice


def speaks_plain_http(place: S3Place) -> bool:
    options = connect(place).client_options
    assert options is not None
    return str(options["allow_http"]) == "true"


@pytest.mark.parametrize("endpoint", ["http://localhost:9000", "http://127.0.0.1:9000", "http://[::1]:9000"])
def test_plain_http_is_spoken_with_this_machine(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert speaks_plain_http(S3Place("bucket"))


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
@pytest.mark.parametrize("host", ["minio:9000", "192.168.1.7:9000", "localhost.example.com"])
def test_plain_http_with_another_machine_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, variable: str, host: str
) -> None:
    monkeypatch.setenv(variable, f"http://{host}")
    with pytest.raises(InvalidInput, match="unencrypted"):
        connect(S3Place("bucket"))
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert speaks_plain_http(S3Place("bucket"))


@pytest.mark.parametrize("endpoint", ["", "https://s3.example.com"])
def test_an_encrypted_endpoint_is_never_left_for_a_plain_one(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert not speaks_plain_http(S3Place("bucket"))


@pytest.mark.parametrize(
    "endpoint",
    [
        "minio:9000",
        "ftp://minio",
        "http://",
        "https://",
        "http://[::1",
        "https://minio:99999",
        "https://a b",
        "https://minio/path",
        "https://user:word@minio",
        "HTTP://minio",
    ],
)
def test_an_endpoint_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(InvalidInput, match="endpoint"):
        connect(S3Place("bucket"))


def test_a_variable_that_the_client_cannot_use_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "sometimes")
    with pytest.raises(InvalidInput, match="cannot be made") as caught:
        connect(S3Place("bucket"))
    assert "AWS_" in caught.value.advice


def test_a_folder_is_a_place_too(tmp_path: Path) -> None:
    key = open_artifacts(str(tmp_path / "shared")).put(Scope("acme", "docs"), b"bytes")
    assert (tmp_path / "shared/acme/docs" / key.sha256[:2] / key.sha256).read_bytes() == b"bytes"


def test_a_place_on_s3_sends_nothing_before_it_is_used() -> None:
    assert open_artifacts("s3://bucket/prefix", max_size_bytes=7).max_size_bytes == 7


@pytest.mark.parametrize("place", ["gs://bucket/prefix", "file:///folder", "S3://bucket"])
def test_another_scheme_is_refused(place: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be kept by"):
        open_artifacts(place)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("dagbok.projections.artifacts.s3")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(InvalidInput, match="obstore") as caught:
        open_artifacts("s3://bucket/prefix")
    assert caught.value.advice == "in a clone of dagbok: pip install '.[s3]'"


def test_the_newest_object_is_the_one_that_the_service_wrote_last() -> None:
    """Within a second of the service, the one whose key sorts last."""
    old, new = (
        Written("n", "1999999999999-0000000000000000", 1, 1_000),
        Written("n", "1000000000000-ffffffffffffffff", 1, 2_000),
    )
    tie = Written("n", "1000000000001-0000000000000000", 1, 2_000)
    assert newest([new, old]) == new
    assert newest([tie, new, old]) == tie
    assert newest([]) is None


def test_a_key_is_new_and_later_ones_sort_later() -> None:
    first, second, later = (new_key("a/b/c/d", lambda now=now: now) for now in (999, 999, 1_000))  # type: ignore[misc]
    assert first != second
    assert max(first, second) < later
    assert first.startswith("a/b/c/d/0000000000999-")
