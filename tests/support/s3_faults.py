"""What can go wrong between a client and an S3 service, as answers of `S3Service.fails`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from socket import SHUT_RDWR
from threading import Event
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from tests.support.s3_service import Answer


def says(status: str, code: str = "") -> Answer:
    """An error that the service reports."""
    body = f"<Error><Code>{code}</Code><AWSAccessKeyId>tester</AWSAccessKeyId></Error>".encode() if code else b""

    def answer(inner: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        _drain(environ)
        start(status, [("Content-Length", str(len(body)))])
        return [body]

    return answer


def breaks_off(inner: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    """Half of the body comes, then the connection is gone."""
    status, headers, body = asked(inner, environ)
    start(status, headers)

    def halves() -> Iterator[bytes]:
        yield body[: len(body) // 2]
        raise ConnectionResetError

    return halves()


def alters(change: Callable[[bytes], bytes]) -> Answer:
    """The service answers well, with another body of whatever length."""

    def answer(inner: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        status, headers, body = asked(inner, environ)
        body = change(body)
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        start(status, [*kept, ("Content-Length", str(len(body)))])
        return [body]

    return answer


def answers_late(release: Event, arrived: Event | None = None) -> Answer:
    """Nothing is done before the event."""

    def answer(inner: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if arrived is not None:
            arrived.set()
        release.wait(60)
        return inner(environ, start)

    return answer


def answer_is_lost(inner: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    """The service does what was asked; the client is never told."""
    asked(inner, environ)
    environ["werkzeug.socket"].shutdown(SHUT_RDWR)
    raise ConnectionResetError


def meanwhile(act: Callable[[], object]) -> Answer:
    """Something happens after the request was sent and before it is served."""

    def answer(inner: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        act()
        return inner(environ, start)

    return answer


def asked(inner: WSGIApplication, environ: WSGIEnvironment) -> tuple[str, list[tuple[str, str]], bytes]:
    """Status, headers and body that the service would answer with."""
    heads: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], error: object = None) -> Callable[[bytes], object]:
        heads.append((status, headers))
        return bytearray().extend

    body = b"".join(inner(environ, start))
    ((status, headers),) = heads
    return status, headers, body


def _drain(environ: WSGIEnvironment) -> None:
    """Whoever answers without reading the body leaves it to be taken for the next request."""
    if size_bytes := int(environ.get("CONTENT_LENGTH") or 0):
        environ["wsgi.input"].read(size_bytes)
