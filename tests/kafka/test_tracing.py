"""The context of a trace in the headers of records: from the one who asks to the worker, and back into the log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from dagbok import Dagbok, Outcome, TaskContext, worker
from dagbok.agents.tracing.current import AttemptSpans
from dagbok.agents.tracing.ids import attempt_span_id
from dagbok.events.commit import split_value
from dagbok.events.envelope import decode_command
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import COMMANDS, EVENTS
from dagbok.events.traceparent import TRACEPARENT, Parent, read_traceparent
from tests.contract.queue_sites import LANE, dispatch, serve
from tests.kafka.queue_site import make_topics, new_prefix, queue_of
from tests.support.hosts import TIMEOUT_S, spec, yes
from tests.support.otlp import Receiver
from tests.support.traces import check_trace


async def read(settings: KafkaSettings, topic: str) -> list[tuple[bytes, str]]:
    """The values of a topic of one partition, each with the span that its header names."""
    place = TopicPartition(settings.prefix + topic, 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=settings.bootstrap_servers, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        end, found = (await consumer.end_offsets([place]))[place], list[tuple[bytes, str]]()
        while len(found) < end:
            for record in (await consumer.getmany(place, timeout_ms=1_000)).get(place, ()):
                found.append((record.value, dict(record.headers).get(TRACEPARENT, b"").decode()))
        return found
    finally:
        await consumer.stop()


async def test_the_context_goes_from_the_one_who_asks_to_the_worker_and_back(
    settings: KafkaSettings, tmp_path: Path, receiver: Receiver
) -> None:
    seen: list[trace.SpanContext] = []

    @worker("look")
    async def look(task: TaskContext) -> Outcome:
        seen.append(trace.get_current_span().get_span_context())
        return Outcome.candidate("x")

    await topics.create(settings, topics.declared(settings.prefix, 1))
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("user")
    async with asyncio.timeout(TIMEOUT_S):
        client = Dagbok.connect(yes, look, kafka=settings, artifacts=str(tmp_path), schedule=True, session_s=1.5)
        async with client as dagbok:
            with tracer.start_as_current_span("nightly") as nightly:
                run = (await dagbok.run(spec("look", id="a"))).run
        caller = nightly.get_span_context()
        await receiver.wait(lambda: any(span.name == "run" for span in receiver.spans))

    asked = Parent(caller.trace_id, caller.span_id, True)
    work, review = (Parent(int(run, 16), attempt_span_id(run, "a", epoch), True) for epoch in (1, 2))
    wanted = {"StartRun": asked, "StartAttempt": work, "SubmitOutcome": work, "SubmitVerdict": review}
    commands = await read(settings, COMMANDS)
    assert {decode_command(value).type: read_traceparent(named) for value, named in commands} == wanted
    commits = [(split_value(value), read_traceparent(named)) for value, named in await read(settings, EVENTS)]
    assert {parts[0].command_type: named for parts, named in commits if parts is not None} == wanted
    for topic, attempt in (("work.default", work), ("review.default", review)):
        sent = await read(settings, topic)
        assert {read_traceparent(named) for _, named in sent} == {attempt}
        assert not [value for value, _ in sent if TRACEPARENT.encode() in value]
    assert [(span.trace_id, span.span_id, span.is_remote) for span in seen] == [(work.trace_id, work.span_id, True)]
    check_trace(receiver.spans, run)
    (told,) = {span.callers for span in receiver.spans if span.name == "run"}
    assert told == ((f"{asked.trace_id:032x}", f"{asked.span_id:016x}"),)


async def test_whether_an_attempt_is_sampled_is_the_word_of_its_owner(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its function traces belongs to a trace that nobody sends, whatever the variables of the worker say."""
    prefix = new_prefix()
    await make_topics(prefix, "default")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    async with asyncio.timeout(TIMEOUT_S), queue_of(prefix, "owner") as owner, queue_of(prefix, "worker") as taker:
        serve(taker)
        owner.put(LANE, [dispatch(1)])
        (taken,) = await taker.take(LANE)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    spans = AttemptSpans()
    with spans.around(taken):
        assert not trace.get_current_span().get_span_context().trace_flags.sampled
    with spans.around(dispatch(1)):
        assert trace.get_current_span().get_span_context().trace_flags.sampled
