"""A receiver of traces on a free port of this machine: OTLP over HTTP, as a collector would take it."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

TIMEOUT_S = 30.0
Attributes = dict[str, str | int | float | bool]


@dataclass(frozen=True)
class Arrived:
    """A span as it arrived. Ids are hex, times nanoseconds since 1970; `links` are those within its trace, `callers`
    (trace, span) all others; `error` is none unless the status says so."""

    trace: str
    id: str
    parent: str
    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes
    events: tuple[tuple[str, int, Attributes], ...]
    links: tuple[str, ...]
    callers: tuple[tuple[str, str], ...]
    error: str | None
    service: str


@dataclass
class Receiver:
    """`status`: how requests are answered. While `open` is not set, they are not. `spans`: all that was accepted."""

    status: int = 200
    spans: list[Arrived] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    requests: int = 0
    url: str = ""
    open: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    async def wait(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds; asked after every request. Raises `TimeoutError`."""
        if not await asyncio.to_thread(self._wait, holds):
            raise TimeoutError(f"{self.requests} requests, {len(self.spans)} spans: {[s.name for s in self.spans]}")

    def _wait(self, holds: Callable[[], bool]) -> bool:
        with self.changed:
            return self.changed.wait_for(holds, TIMEOUT_S)

    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        """Note a request, and say how to answer."""
        with self.changed:
            self.requests += 1
            self.changed.notify_all()
        self.open.wait(TIMEOUT_S)
        with self.changed:
            if self.status == 200:
                self.headers.append(headers)
                self.spans += _spans(gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body)
            self.changed.notify_all()
            return self.status


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver until the end of the block; its `url` is what `OTEL_EXPORTER_OTLP_ENDPOINT` takes."""
    receiver = Receiver()
    receiver.open.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size_bytes = int(self.headers["Content-Length"])
            body = self.rfile.read(size_bytes)
            if len(body) < size_bytes:
                return  # the sender was killed
            status = receiver.take(dict(self.headers), body) if self.path == "/v1/traces" else 404
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.open.set()
        server.shutdown()
        thread.join()
        server.server_close()


def environment(receiver: Receiver, **more: str) -> dict[str, str]:
    """The variables that switch tracing on, towards the receiver, without waiting for full batches."""
    return {
        "DAGBOK_TRACING": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_BSP_SCHEDULE_DELAY": "20",
        **more,
    }


def _spans(body: bytes) -> list[Arrived]:
    return [
        _arrived(span, str(_attributes(resource.resource.attributes).get("service.name", "")))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _arrived(span: ProtoSpan, service: str) -> Arrived:
    return Arrived(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        events=tuple((event.name, event.time_unix_nano, _attributes(event.attributes)) for event in span.events),
        links=tuple(link.span_id.hex() for link in span.links if link.trace_id == span.trace_id),
        callers=tuple(
            (link.trace_id.hex(), link.span_id.hex()) for link in span.links if link.trace_id != span.trace_id
        ),
        error=span.status.message if span.status.code == 2 else None,
        service=service,
    )


def _attributes(pairs: Iterable[KeyValue]) -> Attributes:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}
