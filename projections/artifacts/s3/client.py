"""The connection to an S3-compatible service. Credentials, region, endpoint and encryption come from the `AWS_*`
variables that obstore reads (`docs/artifacts.md` lists those that matter)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import S3Store

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.projections.artifacts.s3.place import S3Place

ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_ENDPOINT: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+/?")
ALLOW_HTTP: Final = "AWS_ALLOW_HTTP"


@dataclass(frozen=True)
class S3Patience:
    """How long a request may take, and how long a failing service is borne before `StorageFailed`.

    `connect_s`: until a connection stands. `request_s`: one request with its body, of at most `bucket.PIECE_BYTES`.
    `retries` and `retry_s`: a request that met a 5xx, a refused or a broken connection is sent again so many times,
    with growing pauses, and no more after so many seconds.
    """

    connect_s: float = 5.0
    request_s: float = 30.0
    retries: int = 8
    retry_s: float = 60.0
    first_pause_s: float = 0.1
    longest_pause_s: float = 5.0


PATIENCE: Final = S3Patience()


def connect(place: S3Place, patience: S3Patience = PATIENCE) -> S3Store:
    """A client of the bucket. Sends nothing: a bucket that is missing is met at the first use.

    Plain HTTP is spoken with a loopback address, and with others when `AWS_ALLOW_HTTP` is true. Raises `InvalidInput`
    (`usage`) for an endpoint or another variable that cannot be used.
    """
    endpoint = _endpoint()
    try:
        return S3Store(
            place.bucket,
            prefix=place.prefix or None,
            config={"aws_endpoint_url_s3": endpoint} if endpoint else None,
            client_options={
                "allow_http": endpoint is not None and _may_be_plain(endpoint),
                "connect_timeout": timedelta(seconds=patience.connect_s),
                "timeout": timedelta(seconds=patience.request_s),
            },
            retry_config={
                "max_retries": patience.retries,
                "retry_timeout": timedelta(seconds=patience.retry_s),
                "backoff": {
                    "init_backoff": timedelta(seconds=patience.first_pause_s),
                    "max_backoff": timedelta(seconds=patience.longest_pause_s),
                },
            },
        )
    except (BaseError, ValueError) as error:
        raise InvalidInput(
            f"the client for {place} cannot be made: {str(error).splitlines()[0][:200]}",
            code=Code.USAGE,
            advice="look at the AWS_* variables",
        ) from error


def _endpoint() -> str | None:
    """What the first variable says that is not empty; none leaves it to the client. An empty one must not reach it: it
    would not be refused, it would end the thread."""
    said = [os.environ[name].strip() for name in ENDPOINTS if name in os.environ]
    if "" in said:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        said.append(f"https://s3.{region}.amazonaws.com")
    return next(filter(None, said), None)


def _may_be_plain(endpoint: str) -> bool:
    host = _host(endpoint)
    if endpoint.startswith("https:"):
        return False
    if not _is_loopback(host) and os.environ.get(ALLOW_HTTP, "").strip().lower() not in ("1", "true"):
        raise InvalidInput(
            f"the S3 endpoint {endpoint!r} would get artifacts unencrypted",
            code=Code.USAGE,
            advice=f"use https, or set {ALLOW_HTTP}=true in a network that you trust",
        )
    return True


def _host(endpoint: str) -> str:
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port == 0 or _ENDPOINT.fullmatch(endpoint) is None:
        raise InvalidInput(
            f"the S3 endpoint is {endpoint!r}", code=Code.USAGE, advice="write https://host:port, http:// for loopback"
        )
    return host


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
