"""The spans of a run that is in a log, whoever owns it, and whether or not it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator

from dagbok.agents.tracing.fold import SpanFold
from dagbok.agents.tracing.span import Span
from dagbok.events.body import decode_body
from dagbok.events.ids import run_stream
from dagbok.events.log.port import Log
from dagbok.events.rule import GENESIS
from dagbok.projections.reading import read_effective

READ_COMMITS = 500


async def stored_spans(log: Log, partition: int, run: str) -> AsyncIterator[Span]:
    """Every span that has ended by the end of the log, as it ended: those of a run that is closed are its whole trace.

    The same spans, with the same ids, as its owner sent or will send. Raises what `read_effective` raises."""
    fold, position, stream = SpanFold(), GENESIS, run_stream(run)
    while True:
        before = position
        position, commits = await read_effective(log, partition, position, READ_COMMITS)
        for commit in commits:
            seal = commit.seal
            if seal.stream == stream:
                events = decode_body(commit.stored_body, seal.codec, seal.raw_size)
                for span in fold.apply(seal, events, traceparent=commit.traceparent, keep_failed=True):
                    yield span
        if position == before:
            return


async def stored_batches(log: Log, partition: int, run: str, size: int) -> AsyncIterator[list[Span]]:
    """The same in lists of up to `size`."""
    batch: list[Span] = []
    async for span in stored_spans(log, partition, run):
        batch.append(span)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
