"""`dagbok trace`: the trace of a run that is in the log, printed or sent, whenever and however often."""

from __future__ import annotations

import socket

import pytest
from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from dagbok.cli.tracing import endpoint_of
from dagbok.events.errors import InvalidInput
from tests.cli.conftest import Call
from tests.cli.programs import Program
from tests.support.otlp import receiving
from tests.support.traces import check_trace


def test_a_run_that_is_over_is_sent_whole(call: Call, three_runs: Program) -> None:
    run = next(row for row in call(*three_runs.look("ls", "--json")).json if row["status"] == "succeeded")["run"]
    with receiving() as receiver:
        first = call(*three_runs.look("trace", run, "--otlp", receiver.url, "--json"))
        second = call(*three_runs.look("trace", run, "--otlp", f"{receiver.url}/v1/traces"))
    assert (first.status, second.status) == (0, 0)
    check_trace(receiver.spans, run)
    count = len({span.id for span in receiver.spans})
    assert first.json == {"arrived": count, "lost": 0}
    assert second.out == f"{count} spans arrived\n"
    assert len(receiver.spans) == 2 * count


def test_the_variables_of_opentelemetry_say_where_to(
    call: Call, three_runs: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        assert call(*three_runs.look("trace", "last", "--send")).status == 0
    assert receiver.spans


def test_a_run_is_printed_as_otlp_json(call: Call, three_runs: Program) -> None:
    run = next(row for row in call(*three_runs.look("ls", "--json")).json if row["status"] == "failed")["run"]
    said = call(*three_runs.look("trace", run))
    assert said.status == 0
    told = said.json["resourceSpans"][0]["scopeSpans"][0]["spans"]
    with receiving() as receiver:
        call(*three_runs.look("trace", run, "--otlp", receiver.url))
    assert [(span["traceId"], span["spanId"], span.get("parentSpanId", "")) for span in told] == [
        (span.trace, span.id, span.parent) for span in receiver.spans
    ]
    assert [span.get("status", {}).get("message") for span in told] == [span.error for span in receiver.spans]
    assert any(span.error for span in receiver.spans)
    for span in told:  # in the JSON of protobuf, ids would be base64
        span.pop("traceId"), span.pop("spanId"), span.pop("parentSpanId", None)
    parsed = ParseDict(said.json | {"resourceSpans": [{"scopeSpans": [{"spans": told}]}]}, TracesData())
    times = [(s.start_time_unix_nano, s.end_time_unix_nano) for s in parsed.resource_spans[0].scope_spans[0].spans]
    assert times == [(span.start_ns, span.end_ns) for span in receiver.spans]


def test_a_receiver_that_is_not_there_is_said(call: Call, three_runs: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = call(*three_runs.look("trace", "last", "--otlp", f"http://127.0.0.1:{port}"))
    assert said.status == 1
    assert "0 spans arrived" in said.out
    assert "did not" in said.out


def test_an_unknown_run_and_a_wrong_address_are_refused(call: Call, three_runs: Program) -> None:
    assert call(*three_runs.look("trace", "nothing")).status == 3
    wrong = call(*three_runs.look("trace", "last", "--otlp", "collector:4318"))
    assert (wrong.status, "DAGBOK-USAGE" in wrong.err) == (2, True)


def test_an_address_without_a_path_is_that_of_a_receiver() -> None:
    assert endpoint_of("http://localhost:4318") == "http://localhost:4318/v1/traces"
    assert endpoint_of("https://example.org/otlp/v1/traces") == "https://example.org/otlp/v1/traces"
    with pytest.raises(InvalidInput):
        endpoint_of("grpc://localhost:4317")
