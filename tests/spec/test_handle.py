"""From a command to its commit: the same state and record give the same bytes, and only the command itself counts."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.agents.scheduler.handle import handle, refuse_broken
from dagbok.events.codes import Code
from dagbok.events.envelope import command_record, run_command
from dagbok.events.log.port import StoredRecord
from dagbok.events.run.commands import PauseRun, RunCommand
from dagbok.events.run.events import CommandRefused, RunPaused
from dagbok.projections.partition import PartitionState
from dagbok.testing import start, task
from tests.support.histories import random_history
from tests.support.logbuilder import SENDER, START_MS
from tests.support.scale import scale
from tests.support.snapshotting import image


@pytest.mark.parametrize("seed", range(scale(5, 200)))
def test_the_same_commands_give_the_same_bytes_whatever_stands_beside_them(seed: int) -> None:
    builder = random_history(seed, 80)
    first, second = PartitionState(0), PartitionState(0)
    for record in builder.commands:
        other = msgspec.structs.replace(record, key="another key", headers={"reply_to": "x", "writer": "y"})
        assert handle(first, record, 1).value == handle(second, other, 1).value
    assert image(first) == image(second)


def test_a_run_outside_of_memory_is_brought_back_by_the_stream_of_the_command_not_by_the_key_of_its_record() -> None:
    state = PartitionState(0)
    handle(state, _record(0, start(task("a"))), 1)
    cold = dict(state.runs)
    state.runs.clear()

    def thaw(state: PartitionState, stream: str) -> None:
        if stream in cold:
            state.runs[stream] = cold.pop(stream)

    decided = handle(state, msgspec.structs.replace(_record(1, PauseRun()), key="run:other"), 1, thaw)
    assert [type(event) for event in decided.events] == [RunPaused]


def test_the_refusal_of_a_command_that_broke_the_state_belongs_to_its_run_and_keeps_its_bytes() -> None:
    state = PartitionState(0)
    handle(state, _record(0, start(task("a"))), 1)
    record = _record(1, PauseRun())
    decided = refuse_broken(state, record, ZeroDivisionError("a mistake"))
    (refusal,) = decided.events
    assert isinstance(refusal, CommandRefused)
    assert (refusal.code, refusal.raw, decided.stream) == (Code.INTERNAL_ERROR, record.value, "run:r")


def _record(offset: int, command: RunCommand) -> StoredRecord:
    envelope = run_command(SENDER, "run:r", command, id=f"id-{offset}", now_ms=START_MS)
    return StoredRecord(offset, START_MS, "run:r", command_record(envelope).value)
