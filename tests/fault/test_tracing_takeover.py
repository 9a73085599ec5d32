"""A process that is killed takes spans with it; the next one sends them, and no span twice in two forms."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

import pytest

from dagbok.agents import faultpoints
from dagbok.agents.tracing.stored import stored_spans
from dagbok.events.ids import run_id
from dagbok.events.log.sqlite import SqliteLog
from tests.support.otlp import Receiver
from tests.support.scale import scale
from tests.support.traces import check_trace
from tests.support.victims import run_victim, start_victim

RUN = run_id("local", "default", "victim")


async def test_one_process_sends_every_span_of_the_run_once(tmp_path: Path, receiver: Receiver) -> None:
    status, output = await run_victim(tmp_path)
    assert status == 0, output
    check_trace(receiver.spans, RUN)
    assert len({span.id for span in receiver.spans}) == len(receiver.spans)
    await check_complete(tmp_path, receiver)


@pytest.mark.parametrize("place", [faultpoints.BATCH_APPENDED, faultpoints.OUTPUTS_SENT, faultpoints.FUNCTION_DONE])
async def test_killed_at_a_seam(tmp_path: Path, receiver: Receiver, place: str) -> None:
    status, output = await run_victim(tmp_path, f"{place}:12")
    assert status == -signal.SIGKILL, output
    status, output = await run_victim(tmp_path)
    assert status == 0, output
    check_trace(receiver.spans, RUN)
    await check_complete(tmp_path, receiver)


async def test_killed_again_and_again_at_random_times(tmp_path: Path, receiver: Receiver) -> None:
    times = random.Random(1729)
    for _ in range(scale(3, 20)):
        process = await start_victim(tmp_path)
        try:
            await asyncio.wait_for(process.communicate(), times.uniform(0.3, 1.0))
        except TimeoutError:
            process.kill()
            await process.wait()
    status, output = await run_victim(tmp_path)
    assert status == 0, output
    check_trace(receiver.spans, RUN)
    await check_complete(tmp_path, receiver)


async def check_complete(folder: Path, receiver: Receiver) -> None:
    """What arrived is what the log of the folder says."""
    log = SqliteLog.open(folder / "log.db")
    try:
        expected = {f"{span.span_id:016x}": span async for span in stored_spans(log, 0, RUN)}
    finally:
        await log.close()
    assert {span.id for span in receiver.spans} == expected.keys()
    for span in receiver.spans:
        told = expected[span.id]
        assert (span.name, span.attributes) == (told.name, told.attributes)
        assert (span.start_ns, span.end_ns) == (told.start_ms * 10**6, told.end_ms * 10**6)
