"""An S3 service on a loopback port, of this process: requests can be looked at and made to fail, and a hand can reach
into the buckets behind the client's back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Thread
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import FakeBucket, S3Backend, s3_backends
from werkzeug.serving import make_server

_ACCOUNT: Final = "123456789012"
_REGION: Final = "us-east-1"
_numbers = count(1)

Answer = Callable[[WSGIApplication, WSGIEnvironment, StartResponse], Iterable[bytes]]
"""What a fault answers, with or without asking the service."""


@dataclass
class Request:
    """One request that arrived. `size_bytes`: of its body."""

    method: str
    path: str
    query: str
    size_bytes: int


@dataclass
class Fault:
    """What goes wrong with the next `times` requests that `hits`."""

    answer: Answer
    hits: Callable[[Request], bool]
    times: int


@dataclass
class S3Service:
    """The service and what it saw. Its clock is the machine's."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def fails(self, answer: Answer, *, method: str, within: str = "", times: int = 10**9) -> None:
        """Let requests with this method and this text in path or query be answered so."""

        def hits(request: Request) -> bool:
            return request.method == method and within in f"{request.path}?{request.query}"

        self.faults.append(Fault(answer, hits, times))

    def recovers(self) -> None:
        """No faults from now on, and nothing seen yet."""
        self.faults.clear()
        self.requests.clear()

    def seen(self, method: str, within: str = "") -> list[Request]:
        """The requests with this method and this text in path or query."""
        return [seen for seen in self.requests if seen.method == method and within in f"{seen.path}?{seen.query}"]

    def new_bucket(self) -> S3Bucket:
        """An empty one with a name of its own."""
        name = f"bucket-{next(_numbers)}"
        self.backend.create_bucket(name, _REGION)
        return S3Bucket(self, name)

    @property
    def backend(self) -> S3Backend:
        return s3_backends[_ACCOUNT]["aws"]

    def wsgi(self, inner: WSGIApplication) -> WSGIApplication:
        """The application with the faults before it."""

        def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            size_bytes = int(environ.get("CONTENT_LENGTH") or 0)
            request = Request(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"], size_bytes)
            self.requests.append(request)
            for fault in self.faults:
                if fault.times > 0 and fault.hits(request):
                    fault.times -= 1
                    return fault.answer(inner, environ, start_response)
            return inner(environ, start_response)

        return answer


@dataclass
class S3Bucket:
    """A bucket, seen from behind."""

    service: S3Service
    name: str

    @property
    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(self._bucket.keys)

    def content(self, key: str) -> bytes:
        """The bytes of an object."""
        found = self.service.backend.get_object(self.name, key)
        assert found is not None
        return found.value

    def put(self, key: str, data: bytes) -> None:
        """Write an object, over one that is there."""
        self.service.backend.put_object(self.name, key, data)

    def grow_older(self, seconds: float) -> None:
        """Move the times of modification of all objects back."""
        for key in list(self._bucket.keys):
            found = self._bucket.keys.get(key)
            if found is not None:
                found.last_modified -= timedelta(seconds=seconds)

    @property
    def uploads(self) -> int:
        """Uploads in parts that were neither completed nor given up."""
        return len(self._bucket.multiparts)

    @property
    def _bucket(self) -> FakeBucket:
        return self.service.backend.buckets[self.name]


@contextmanager
def running_s3_service() -> Iterator[S3Service]:
    """Start it, and stop it in the end."""
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    service = S3Service()
    inner: WSGIApplication = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, service.wsgi(inner), threaded=True)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, name="s3-service")
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def speak_to(monkeypatch: pytest.MonkeyPatch, service: S3Service) -> None:
    """What an operator sets, and nothing that this machine may have set."""
    for name in ("ENDPOINT_URL_S3", "ENDPOINT", "PROFILE", "SESSION_TOKEN", "DEFAULT_REGION", "ALLOW_HTTP"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", service.url)
    monkeypatch.setenv("AWS_REGION", _REGION)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
