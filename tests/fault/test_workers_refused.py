"""Results on which the scheduler breaks: the attempt ends all the same, and nothing is repeated for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dagbok import Candidate, Outcome, TaskContext, verifier, worker
from dagbok.agents.scheduler import handle as handling
from dagbok.agents.scheduler.execute import StateBroken, execute
from dagbok.agents.workers import outbox
from dagbok.agents.workers.attempts import Attempts
from dagbok.agents.workers.held import Held
from dagbok.client import Dagbok
from dagbok.events.envelope import Answer
from dagbok.events.run.commands import FailAttempt, RunCommand, SubmitOutcome, SubmitVerdict
from dagbok.events.run.events import CommandRefused
from tests.support.hosts import events_of, hosted, spec


@worker("does", pure=True)
async def does(task: TaskContext) -> Outcome:
    """One of each."""
    if task.inputs == "fail":
        raise RuntimeError("bad luck")
    return Outcome.candidate(1)


@verifier("agrees", version="1")
async def agrees(candidate: Candidate, task: TaskContext) -> bool:
    """Always."""
    return True


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[RunCommand], bool]], None]:
    """Makes the scheduler break on some commands."""

    def install(on: Callable[[RunCommand], bool]) -> None:
        def broken(run, data, by, partition, offset):  # type: ignore[no-untyped-def]
            if on(data):
                raise StateBroken("it broke")
            return execute(run, data, by, partition, offset)

        monkeypatch.setattr(handling, "execute", broken)

    return install


async def repeating(dagbok: Dagbok) -> None:
    """Time passes quickly for what was refused."""
    box, seen = dagbok.host.workers._outbox, dict[str, int]()
    while True:
        for id, pending in box._pending.items():
            if pending.internal_errors > seen.get(id, 0):
                seen[id] = pending.internal_errors
                pending.sent_s -= outbox.LONGEST_REPEAT_S
        await box.repeat()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("kind", "inputs", "ends"),
    [
        (SubmitOutcome, None, ["internal_error"]),
        (FailAttempt, "fail", ["internal_error"]),
        (SubmitVerdict, None, ["verifier_error"]),
    ],
)
async def test_a_result_the_scheduler_breaks_on_ends_as_a_terminal_failure(
    kind: type[RunCommand],
    inputs: str | None,
    ends: list[str],
    breaks: Callable[[Callable[[RunCommand], bool]], None],
    tmp_path: Path,
) -> None:
    breaks(lambda data: isinstance(data, kind) and not (isinstance(data, FailAttempt) and is_last(data)))
    async with hosted(tmp_path, does, agrees) as dagbok:
        time = asyncio.create_task(repeating(dagbok))
        result = await dagbok.run(spec("does", verifier="agrees", inputs=inputs))
        time.cancel()
        assert [*result.failed.values(), *result.blocked.values()] == ends
        refused = await events_of(dagbok, CommandRefused)
        assert [event.code for event in refused] == ["internal_error"] * 3


async def test_when_not_even_the_failure_is_taken_the_attempt_is_dropped(
    breaks: Callable[[Callable[[RunCommand], bool]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped, mended = asyncio.Event(), asyncio.Event()
    breaks(lambda data: isinstance(data, SubmitOutcome | FailAttempt) and not mended.is_set())
    given_up = Attempts._given_up

    def noted(self: Attempts, held: Held, answer: Answer) -> None:
        given_up(self, held, answer)
        if held.key not in self._holdings:
            dropped.set()

    monkeypatch.setattr(Attempts, "_given_up", noted)
    async with hosted(tmp_path, does) as dagbok:
        time = asyncio.create_task(repeating(dagbok))
        run = await dagbok.start(spec("does"))
        await dropped.wait()
        assert len(await events_of(dagbok, CommandRefused)) == 6
        # The attempt is open still: as soon as the scheduler works again, so does the run.
        mended.set()
        assert (await dagbok.wait(run)).succeeded
        time.cancel()


def is_last(data: FailAttempt) -> bool:
    """The failure that gives up."""
    return data.failure.code == "internal_error"
