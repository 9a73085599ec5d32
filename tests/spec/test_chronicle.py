"""The lines that an owner logs: what a person did, and what a person has to know."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import structlog

from dagbok.agents.scheduler import chronicle
from dagbok.agents.scheduler.handle import handle
from dagbok.events.envelope import command_record, run_command
from dagbok.events.log.port import StoredRecord
from dagbok.events.run import commands as c
from dagbok.events.run.values import FailurePolicy
from dagbok.projections.partition import PartitionState
from dagbok.testing import act, decompose, failure, start, task
from tests.support.logbuilder import SENDER, START_MS


class Partition:
    """Decides commands one by one, and keeps the lines of the last."""

    def __init__(self) -> None:
        self.state = PartitionState(0)
        self.commands = 0

    def tell(self, command: c.RunCommand) -> Sequence[tuple[str, str | None]]:
        """The lines: name of the event, and its task."""
        envelope = run_command(SENDER, "run:r", command, id=f"id-{self.commands}", now_ms=START_MS)
        decided = handle(self.state, StoredRecord(self.commands, START_MS, "", command_record(envelope).value), 1)
        self.commands += 1
        # A logger of its own: that of the module may have been bound under whatever was configured before.
        capture = structlog.testing.LogCapture()
        logger = structlog.wrap_logger(None, processors=[capture], wrapper_class=structlog.BoundLogger)
        with mock.patch.object(chronicle, "logger", logger):
            chronicle.tell(decided)
        lines = capture.entries
        for line in lines:
            assert (line["stream"], line["command_id"]) == ("run:r", envelope.id)
            assert line["at"] == f"0:{self.commands - 1}"
        return [(line["event"], line.get("task")) for line in lines]


def test_what_a_person_does_to_a_run_is_told() -> None:
    partition = Partition()
    assert partition.tell(start(task("a"), task("b"))) == [("RunStarted", None)]
    policy: FailurePolicy = "fail_fast"
    assert partition.tell(c.AmendRun(failure_policy=policy)) == [("RunAmended", None)]
    assert partition.tell(c.SupersedeTask("b", task("b2"))) == [("TaskSuperseded", "b")]
    partition.tell(act.start_attempt(partition.state.runs["run:r"], "a"))
    failed = act.fail_attempt(partition.state.runs["run:r"], "a", failure(terminal=True))
    assert partition.tell(failed) == [("TaskFailed", "a"), ("RunFailed", None)]
    assert partition.tell(c.RetryTask("a")) == [("TaskRetried", "a"), ("RunReopened", None)]


def test_a_cancelled_branch_is_one_line() -> None:
    partition = Partition()
    partition.tell(start(task("root"), task("other")))
    run = partition.state.runs["run:r"]
    partition.tell(act.start_attempt(run, "root"))
    children = decompose(*[task(f"child-{number}") for number in range(5)])
    partition.tell(act.submit_outcome(run, "root", children))
    assert partition.tell(c.CancelTask("root")) == [("TaskCancelled", "root")]
    assert run.counts["cancelled"] == 6
