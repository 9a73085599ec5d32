"""The buffer before the network: bounded, never waited for, and honest about what it dropped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from dagbok.agents.tracing.sink import SpanSink
from dagbok.agents.tracing.span import Span

TIMEOUT_S = 30.0


def span(number: int) -> Span:
    return Span(1, number, None, "run", 0, 0, {})


class Receiver:
    """Takes batches while `open`; `arrives` says whether they arrive."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open, self.asked = threading.Event(), threading.Event()
        self.arrives, self.stopped, self.raises = True, False, False

    def export(self, spans: Sequence[Span]) -> bool:
        self.asked.set()
        assert self.open.wait(TIMEOUT_S)
        if self.raises:
            raise OSError("no route")
        self.batches.append([span.span_id for span in spans])
        return self.arrives

    def stop(self) -> None:
        self.stopped = True
        self.open.set()


async def asked(receiver: Receiver) -> None:
    assert await asyncio.to_thread(receiver.asked.wait, TIMEOUT_S)


async def test_spans_arrive_in_order_and_in_batches() -> None:
    receiver = Receiver()
    receiver.open.set()
    sink = SpanSink(receiver.export, receiver.stop, buffer_spans=100, batch_spans=4, delay_s=60)
    assert all(sink.put(span(number)) for number in range(10))
    await sink.close(TIMEOUT_S)

    assert receiver.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert (sink.exported, sink.dropped, receiver.stopped) == (10, 0, True)


async def test_a_span_that_is_alone_is_sent_after_a_while() -> None:
    receiver = Receiver()
    receiver.open.set()
    sink = SpanSink(receiver.export, receiver.stop, delay_s=0.01)
    sink.put(span(7))
    await asked(receiver)
    await sink.close(TIMEOUT_S)
    assert receiver.batches == [[7]]


async def test_a_slow_receiver_makes_it_full_and_loses_nothing() -> None:
    receiver = Receiver()
    sink = SpanSink(receiver.export, receiver.stop, buffer_spans=4, batch_spans=2, delay_s=0)
    sink.put(span(0))
    await asked(receiver)
    taken = [sink.put(span(number)) for number in range(1, 7)]
    assert taken == [True] * 4 + [False] * 2

    waiting = asyncio.create_task(sink.room())
    receiver.open.set()
    async with asyncio.timeout(TIMEOUT_S):
        await waiting
    assert sink.put(span(5))
    await sink.close(TIMEOUT_S)
    assert [number for batch in receiver.batches for number in batch] == [0, 1, 2, 3, 4, 5]
    assert sink.dropped == 0


async def test_while_the_receiver_is_gone_spans_are_dropped_and_counted() -> None:
    receiver = Receiver()
    receiver.arrives = False
    sink = SpanSink(receiver.export, receiver.stop, buffer_spans=2, batch_spans=2, delay_s=0)
    sink.put(span(0))
    await asked(receiver)
    assert [sink.put(span(number)) for number in (1, 2, 3)] == [True, True, False]
    receiver.open.set()
    async with asyncio.timeout(TIMEOUT_S):
        await sink.room()
    assert sink.failing
    assert all(sink.put(span(number)) for number in range(10, 20))
    await sink.close(TIMEOUT_S)
    assert (sink.exported, sink.dropped) == (0, 13)


async def test_what_an_exporter_raises_counts_as_not_arrived() -> None:
    receiver = Receiver()
    receiver.raises = True
    receiver.open.set()
    sink = SpanSink(receiver.export, receiver.stop, delay_s=0)
    sink.put(span(0))
    await sink.close(TIMEOUT_S)
    assert (sink.exported, sink.dropped) == (0, 1)


async def test_the_end_waits_no_longer_than_its_grace() -> None:
    receiver = Receiver()
    sink = SpanSink(receiver.export, receiver.stop, buffer_spans=8, batch_spans=1, delay_s=0)
    for number in range(3):
        sink.put(span(number))
    await asked(receiver)
    async with asyncio.timeout(TIMEOUT_S):
        await sink.close(0.01)
    assert receiver.stopped
    assert sink.dropped == 2  # the third was on its way


async def test_a_receiver_that_comes_back_gets_what_follows() -> None:
    receiver = Receiver()
    receiver.arrives = False
    receiver.open.set()
    sink = SpanSink(receiver.export, receiver.stop, buffer_spans=1, batch_spans=1, delay_s=0)
    sink.put(span(0))
    async with asyncio.timeout(TIMEOUT_S):
        while not sink.put(span(1)):
            await sink.room()
    receiver.arrives = True
    await sink.close(TIMEOUT_S)
    assert sink.exported + sink.dropped == 2
