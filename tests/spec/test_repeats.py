"""A client's command is repeatable by its id, and an id stands for one command."""

from __future__ import annotations

from dagbok.events.codes import Code
from dagbok.events.envelope import command_record, run_command
from dagbok.events.run import commands as c
from dagbok.events.run.events import CommandRefused, CommandRepeated, RunPaused
from dagbok.events.run.values import Claim
from dagbok.testing import start, task
from tests.support.logbuilder import SENDER, START_MS, LogBuilder


def envelope(run: str, command: c.RunCommand, id: str = "one-id", now_ms: int = START_MS) -> bytes:
    return command_record(run_command(SENDER, f"run:{run}", command, id=id, now_ms=now_ms)).value


def with_two_runs() -> LogBuilder:
    builder = LogBuilder()
    builder.send("a", start(task("t")))
    builder.send("b", start(task("t")))
    return builder


def test_the_same_bytes_again_are_a_repeat() -> None:
    builder = with_two_runs()
    assert [type(event) for event in builder.deliver(envelope("a", c.PauseRun()))] == [RunPaused]
    assert [type(event) for event in builder.deliver(envelope("a", c.PauseRun()))] == [CommandRepeated]


def test_another_command_under_a_used_id_is_refused_and_changes_nothing() -> None:
    builder = with_two_runs()
    builder.deliver(envelope("a", c.PauseRun()))
    for other in (envelope("b", c.CancelRun()), envelope("a", c.PauseRun("why")), envelope("a", c.CancelRun())):
        (refused,) = builder.deliver(other)
        assert isinstance(refused, CommandRefused)
        assert refused.code == Code.IDEMPOTENCY_CONFLICT
    assert (builder.run("a").status, builder.run("b").status) == ("paused", "running")


def test_a_claim_is_no_path() -> None:
    builder = with_two_runs()
    for process in ("../../x", "/etc/x", ".hidden", "", "a/b"):
        claim = Claim(process, 1, "n")
        (refused,) = builder.send("a", c.StartAttempt("t", 1, claim))
        assert isinstance(refused, CommandRefused)
        assert refused.code == Code.UNDECODABLE
