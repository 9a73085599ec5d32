"""A run arrives at a local OTLP receiver as one trace, with what its workers traced themselves; and nothing of
OpenTelemetry is there when tracing is off."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from dagbok import Candidate, Code, Dagbok, Outcome, TaskContext, TaskSpec, verifier, worker
from dagbok.agents.tracing.ids import attempt_span_id
from dagbok.agents.tracing.switch import around_attempts, is_on
from dagbok.events.commit import split_value
from dagbok.events.envelope import decode_command
from dagbok.events.errors import InvalidInput
from dagbok.events.ids import run_id
from dagbok.events.log.port import COMMANDS, EVENTS
from tests.support.hosts import hosted, spec
from tests.support.otlp import Arrived, Receiver
from tests.support.traces import check_trace

CHILDREN = 5


@pytest.fixture
def tracer(receiver: Receiver) -> Iterator[trace.Tracer]:
    """What a library of the user traces with; it comes to the same place."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{receiver.url}/v1/traces")))
    yield provider.get_tracer("user")
    provider.shutdown()


@worker("plan", pure=True)
async def plan(task: TaskContext) -> Outcome:
    """Decompose, then put together."""
    if task.phase == "integrate":
        return Outcome.candidate(len(task.dependencies))
    return Outcome.decompose([TaskSpec(id=f"part-{n}", goal="make", worker="make", verifier="check") for n in range(5)])


@worker("make")
async def make(task: TaskContext) -> Outcome:
    """Fails once, then makes."""
    if task.task_id == "part-0" and task.epoch == 1:
        raise LookupError("not yet")
    return Outcome.candidate(task.task_id)


@verifier("check", version="3")
async def check(candidate: Candidate, task: TaskContext) -> bool:
    """Whatever it is."""
    return True


async def test_a_run_arrives_as_one_connected_trace(tmp_path: Path, receiver: Receiver) -> None:
    async with hosted(tmp_path, plan, make, check) as dagbok:
        result = await dagbok.run(spec("plan", id="all"))
        run = result.run
    assert result.status == "succeeded"

    spans = receiver.spans
    check_trace(spans, run)
    assert sorted({span.name for span in spans}) == sorted(
        ("run", "task plan", "task make", "work plan", "work make", "verify yes", "verify check")
    )
    assert [span.name for span in spans].count("task make") == CHILDREN
    (all_,) = [span for span in spans if span.name == "task plan"]
    assert {span.parent for span in spans if span.name == "task make"} == {all_.id}
    (failed,) = [span for span in spans if span.attributes.get("dagbok.outcome") == "failed"]
    assert failed.error == "LookupError: not yet"
    assert [name for name, _, _ in failed.events] == ["dagbok.attempt.claimed", "exception"]
    assert "LookupError" in str(failed.events[-1][2]["exception.stacktrace"])
    assert {span.service for span in spans} == {"dagbok"}
    assert spans[-1].name == "run"


async def test_a_receiver_is_addressed_as_the_variables_of_opentelemetry_say(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20cGstbGY6c2stbGY=,x-langfuse-ingestion-version=4"
    )
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly audit")
    async with hosted(tmp_path, make, check) as dagbok:
        await dagbok.run(spec("make", verifier="check"))

    sent = {name.lower(): value for name, value in receiver.headers[0].items()}
    assert (sent["authorization"], sent["x-langfuse-ingestion-version"]) == ("Basic cGstbGY6c2stbGY=", "4")
    assert sent["content-type"] == "application/x-protobuf"
    assert sent["content-encoding"] == "gzip"
    assert {span.service for span in receiver.spans} == {"nightly audit"}


async def test_what_a_function_traces_hangs_below_its_attempt(
    tmp_path: Path, receiver: Receiver, tracer: trace.Tracer
) -> None:
    @worker("async")
    async def in_the_loop(task: TaskContext) -> Outcome:
        await asyncio.sleep(0)
        with tracer.start_as_current_span("call"):
            return Outcome.candidate("x")

    @worker("thread", concurrency=2)
    def in_a_thread(task: TaskContext) -> Outcome:
        with tracer.start_as_current_span("call"):
            return Outcome.candidate("x")

    @verifier("looks", version="1")
    def looks(candidate: Candidate, task: TaskContext) -> bool:
        with tracer.start_as_current_span("look"):
            return True

    async with hosted(tmp_path, in_the_loop, in_a_thread, looks) as dagbok:
        tasks = [spec(key, verifier="looks", id=f"{key}-{n}") for key in ("async", "thread") for n in range(3)]
        run = (await dagbok.run(tasks)).run
        assert not trace.get_current_span().get_span_context().is_valid

    for name, kind in (("call", "work"), ("look", "verify")):
        parents = [_span(receiver.spans, span.parent) for span in receiver.spans if span.name == name]
        assert len({parent.id for parent in parents}) == 6
        assert {parent.attributes["dagbok.kind"] for parent in parents} == {kind}
    assert {span.trace for span in receiver.spans} == {run}


async def test_a_run_is_linked_to_the_span_in_which_it_was_asked_for(
    tmp_path: Path, receiver: Receiver, tracer: trace.Tracer
) -> None:
    async with hosted(tmp_path, make, check) as dagbok:
        with tracer.start_as_current_span("nightly") as nightly:
            asked = (await dagbok.run(spec("make", verifier="check"), key="asked within a span")).run
        alone = (await dagbok.run(spec("make", verifier="check"), key="asked within none")).run
        context = nightly.get_span_context()

    runs = {span.trace: span for span in receiver.spans if span.name == "run"}
    assert runs[asked].callers == ((f"{context.trace_id:032x}", f"{context.span_id:016x}"),)
    assert runs[alone].callers == ()
    check_trace([span for span in receiver.spans if span.trace == asked], asked)


async def test_a_run_that_a_worker_asks_for_is_linked_to_the_attempt(tmp_path: Path, receiver: Receiver) -> None:
    client: asyncio.Future[Dagbok] = asyncio.get_running_loop().create_future()

    @worker("ask")
    async def ask(task: TaskContext) -> Outcome:
        await (await client).start(spec("make", verifier="check"), key="another")
        return Outcome.candidate("asked")

    async with hosted(tmp_path, make, check, ask) as dagbok:
        client.set_result(dagbok)
        first = await dagbok.run(spec("ask", id="a"), key="one")
        another = run_id("local", "default", "another")
        await dagbok.wait(another)

    (span,) = [span for span in receiver.spans if span.name == "run" and span.trace == another]
    assert span.callers == ((first.run, f"{attempt_span_id(first.run, 'a', 1):016x}"),)


async def test_a_process_that_was_started_within_a_span_says_so(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a pipeline starts `dagbok submit`."""
    monkeypatch.setenv("TRACEPARENT", f"00-{'a' * 32}-{'b' * 16}-01")
    async with hosted(tmp_path, make, check) as dagbok:
        await dagbok.run(spec("make", verifier="check"))
    (span,) = [span for span in receiver.spans if span.name == "run"]
    assert span.callers == (("a" * 32, "b" * 16),)


async def test_every_record_names_the_span_that_it_was_written_in(
    tmp_path: Path, receiver: Receiver, tracer: trace.Tracer
) -> None:
    """The command of a client its span, what a worker sends that of the attempt, and each commit that of its
    command."""
    async with hosted(tmp_path, make, check) as dagbok:
        with tracer.start_as_current_span("nightly") as nightly:
            run = (await dagbok.run(spec("make", verifier="check", id="a"))).run
        context = nightly.get_span_context()
        log = dagbok.host.log
        commands, events = await log.read(COMMANDS, 0, 0, 100), await log.read(EVENTS, 0, 0, 100)

    wanted = {
        "StartRun": f"00-{context.trace_id:032x}-{context.span_id:016x}-01",
        "StartAttempt": f"00-{run}-{attempt_span_id(run, 'a', 1):016x}-01",
        "SubmitOutcome": f"00-{run}-{attempt_span_id(run, 'a', 1):016x}-01",
        "SubmitVerdict": f"00-{run}-{attempt_span_id(run, 'a', 2):016x}-01",
    }
    assert {decode_command(record.value).type: record.headers["traceparent"] for record in commands} == wanted
    caused = [(split_value(record.value), record.headers["traceparent"]) for record in events]
    assert {parts[0].command_type: named for parts, named in caused if parts is not None} == wanted


async def test_no_record_names_a_span_while_it_is_off(tmp_path: Path, tracer: trace.Tracer, receiver: Receiver) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DAGBOK_TRACING")
        async with hosted(tmp_path, make, check) as dagbok:
            with tracer.start_as_current_span("nightly"):
                await dagbok.run(spec("make", verifier="check"))
            log = dagbok.host.log
            records = [record for topic in (COMMANDS, EVENTS) for record in await log.read(topic, 0, 0, 100)]
    assert len(records) > 4
    assert not [record for record in records if "traceparent" in record.headers]


def _span(spans: list[Arrived], id: str) -> Arrived:
    (found,) = [span for span in spans if span.id == id]
    return found


async def test_a_run_that_is_not_sampled_sends_nothing_and_says_so_to_what_its_workers_trace(
    tmp_path: Path, receiver: Receiver, tracer: trace.Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled: list[bool] = []

    @worker("look")
    async def look(task: TaskContext) -> Outcome:
        with tracer.start_as_current_span("call"):
            sampled.append(trace.get_current_span().get_span_context().trace_flags.sampled)
            return Outcome.candidate("x")

    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    async with hosted(tmp_path, look) as dagbok:
        await dagbok.run(spec("look"))
    assert sampled == [False]
    assert receiver.requests == 0


async def test_a_share_of_the_runs_is_sampled_whole(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    async with hosted(tmp_path, make, check) as dagbok:
        runs = [(await dagbok.run(spec("make", verifier="check"), key=f"run {n}")).run for n in range(8)]
    traced = {run for run in runs if int(run[16:], 16) < 2**63}  # the share is taken by the low half of the id
    assert 0 < len(traced) < 8
    assert {span.trace for span in receiver.spans} == traced
    for run in traced:
        check_trace([span for span in receiver.spans if span.trace == run], run)


async def test_no_exporter_leaves_the_current_span_to_the_workers(
    tmp_path: Path, receiver: Receiver, tracer: trace.Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    @worker("look")
    async def look(task: TaskContext) -> Outcome:
        with tracer.start_as_current_span("call"):
            return Outcome.candidate("x")

    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    async with hosted(tmp_path, look) as dagbok:
        run = (await dagbok.run(spec("look", id="a"))).run
    (span,) = receiver.spans
    assert (span.trace, span.parent) == (run, f"{attempt_span_id(run, 'a', 1):016x}")


@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ({}, False),
        ({"DAGBOK_TRACING": ""}, False),
        ({"DAGBOK_TRACING": "0"}, False),
        ({"DAGBOK_TRACING": "1"}, True),
        ({"DAGBOK_TRACING": "true"}, True),
        ({"DAGBOK_TRACING": "1", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_one_variable_switches_it_on(variables: dict[str, str], on: bool) -> None:
    assert is_on(variables) is on


def test_a_value_that_says_neither_is_refused() -> None:
    with pytest.raises(InvalidInput, match="DAGBOK_TRACING is 'perhaps'") as raised:
        is_on({"DAGBOK_TRACING": "perhaps"})
    assert raised.value.code is Code.USAGE


@pytest.mark.parametrize("missing", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"])
async def test_without_the_extra_nothing_begins_and_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setenv("DAGBOK_TRACING", "1")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InvalidInput) as raised:
        around_attempts()
    assert "pip install '.[otel]'" in raised.value.advice
    with pytest.raises(InvalidInput, match="not installed"):
        async with hosted(tmp_path / "data", make):
            pass
    assert not (tmp_path / "data").exists()


def test_nothing_of_it_is_imported_while_it_is_off(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from dagbok import Dagbok

async def main(folder):
    async with Dagbok.embedded(folder, projector="none"):
        pass

asyncio.run(main(sys.argv[1]))
print([name for name in sys.modules if name.split(".")[0] in ("opentelemetry", "google", "requests")])
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
