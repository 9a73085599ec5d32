"""Whatever becomes of the receiver of traces, the runs do not notice."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dagbok import Outcome, TaskContext, worker
from tests.support.hosts import hosted, spec
from tests.support.otlp import Receiver, environment, receiving
from tests.support.traces import check_trace

TASKS = 40


@worker("make", pure=True)
async def make(task: TaskContext) -> Outcome:
    """At once."""
    return Outcome.candidate(task.task_id)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver with a small buffer before it, that is not waited for long at the end."""
    with receiving() as receiver:
        switch_on(
            monkeypatch,
            environment(
                receiver,
                OTEL_BSP_MAX_QUEUE_SIZE="8",
                OTEL_BSP_MAX_EXPORT_BATCH_SIZE="4",
                OTEL_EXPORTER_OTLP_TIMEOUT="1",
                OTEL_BSP_EXPORT_TIMEOUT="200",
            ),
        )
        yield receiver


def switch_on(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def has_run(receiver: Receiver, run: str) -> bool:
    """Whether the span of a run is there."""
    return any((span.name, span.trace) == ("run", run) for span in receiver.spans)


async def test_a_run_ends_while_the_receiver_answers_nothing(tmp_path: Path, receiver: Receiver) -> None:
    receiver.open.clear()
    with capture_logs() as logs:
        async with hosted(tmp_path, make) as dagbok:
            result = await dagbok.run([spec("make") for _ in range(TASKS)])
            assert result.status == "succeeded"
            assert receiver.spans == []
            await receiver.wait(lambda: receiver.requests > 0)
    assert receiver.spans == []
    (told,) = [entry for entry in logs if entry["event"] == "tracing.dropped"]
    assert told["spans"] > 0
    assert "tracing.behind" in {entry["event"] for entry in logs}


async def test_a_receiver_that_is_only_slow_gets_every_span(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_on(monkeypatch, {"OTEL_EXPORTER_OTLP_TIMEOUT": "30", "OTEL_BSP_EXPORT_TIMEOUT": "30000"})
    receiver.open.clear()
    async with hosted(tmp_path, make) as dagbok:
        run = (await dagbok.run([spec("make") for _ in range(TASKS)])).run
        assert receiver.spans == []
        receiver.open.set()
    check_trace(receiver.spans, run)
    assert len(receiver.spans) == 3 * TASKS + 1


async def test_a_receiver_that_is_not_there_costs_the_spans_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    with capture_logs() as logs:
        async with hosted(tmp_path, make) as dagbok:
            result = await dagbok.run([spec("make") for _ in range(TASKS)])
    assert result.status == "succeeded"
    (told,) = [entry for entry in logs if entry["event"] == "tracing.dropped"]
    assert (told["exported"], told["spans"] > 0) == (0, True)


async def test_a_receiver_that_refuses_is_told_of_once_and_asked_again(tmp_path: Path, receiver: Receiver) -> None:
    receiver.status = 400
    with capture_logs() as logs:
        async with hosted(tmp_path, make) as dagbok:
            await dagbok.run([spec("make") for _ in range(TASKS)])
            await receiver.wait(lambda: receiver.requests >= 2)
            receiver.status = 200
            for key in ("later", "last"):  # what comes second was sent when the first was known to have arrived
                run = (await dagbok.run(spec("make"), key=key)).run
                await receiver.wait(partial(has_run, receiver, run))
    events = [entry["event"] for entry in logs]
    assert events.count("tracing.receiver_failed") == 1
    assert events.count("tracing.receiver_is_back") == 1


async def test_the_end_does_not_wait_for_a_receiver_that_hangs(tmp_path: Path, receiver: Receiver) -> None:
    receiver.open.clear()
    async with hosted(tmp_path, make) as dagbok:
        await dagbok.run(spec("make"))
        await receiver.wait(lambda: receiver.requests > 0)
        start_s = time.monotonic()
    assert time.monotonic() - start_s < 5  # 0.2 s were allowed; the rest is the host's own
