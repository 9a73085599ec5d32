"""Whoever was told when to ask again says so: no other attempt opens before, and none is parked for ever."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dagbok import Candidate, Dagbok, Outcome, Retry, TaskContext, TaskSpec, verifier, worker
from dagbok.agents.scheduler.decide.retry import backoff_ms
from dagbok.agents.workers.retry import retry_after_ms
from dagbok.events.errors import InvalidInput
from dagbok.events.run.commands import MAX_RETRY_AFTER_MS
from dagbok.events.run.events import AttemptFailed, AttemptOpened, TaskBackedOff
from dagbok.testing import act, candidate, failure, like, run_of, task
from dagbok.testing.spec import Scenario

LIMITED = failure("slow down")


def _failed(run: Scenario, asked_ms: int) -> tuple[Scenario, int]:
    """After a failure that asks for so long, with how long the next attempt is put off beyond the backoff."""
    after = run.when(act.fail_attempt(run.state, "a", LIMITED, retry_after_ms=asked_ms))
    node = after.state.tasks["a"]
    spread_ms = backoff_ms(after.state, node, node.failures or node.verifier_errors)
    return after, node.due_ms - after.now_ms - spread_ms


@pytest.mark.parametrize(
    ("asked_ms", "waits_ms"),
    [(0, 0), (30_000, 30_000), (-5, 0), (MAX_RETRY_AFTER_MS, MAX_RETRY_AFTER_MS), (2**60, MAX_RETRY_AFTER_MS)],
)
def test_no_other_attempt_opens_before_and_the_backoff_comes_on_top(asked_ms: int, waits_ms: int) -> None:
    after, put_off_ms = _failed(run_of(task("a")).starts("a"), asked_ms)
    after.then(AttemptFailed, like(TaskBackedOff, task="a", review=False))
    assert put_off_ms == waits_ms
    after.fires("backoff", "a").then(like(AttemptOpened, task="a", kind="work"))


def test_a_verifier_may_ask_for_it_too() -> None:
    review = run_of(task("a")).starts("a").submits("a", candidate(1)).starts("a")
    after, put_off_ms = _failed(review, 30_000)
    after.then(AttemptFailed, like(TaskBackedOff, task="a", review=True))
    assert put_off_ms == 30_000


def test_a_failure_that_is_the_last_waits_for_nothing() -> None:
    run = run_of(task("a", max_attempts=1)).starts("a")
    run.when(act.fail_attempt(run.state, "a", LIMITED, retry_after_ms=30_000)).then_task("a", status="failed")


def test_seconds_become_milliseconds_within_a_day() -> None:
    assert retry_after_ms(Retry("no", after_s=0.0123)) == 13
    assert retry_after_ms(Retry("no", after_s=math.inf)) == MAX_RETRY_AFTER_MS
    assert retry_after_ms(ValueError("no")) == 0
    assert str(Retry("slow down", after_s=1)) == "slow down"
    for wrong in (-1, math.nan):
        with pytest.raises(InvalidInput, match="after_s of Retry"):
            Retry("no", after_s=wrong)


async def test_a_worker_and_a_verifier_are_called_again_after_the_time_they_asked_for(tmp_path: Path) -> None:
    @worker("limited")
    async def limited(task: TaskContext) -> Outcome:
        if task.attempt == 1:
            raise Retry("slow down", after_s=0.3)
        return Outcome.candidate(task.diagnostics)

    asked: list[int] = []

    @verifier("limited", version="1")
    async def judge(candidate: Candidate, task: TaskContext) -> bool:
        asked.append(1)
        if len(asked) == 1:
            raise Retry("me too", after_s=0.4)
        return True

    async with Dagbok.embedded(tmp_path, limited, judge, projector="none") as dagbok:
        result = await dagbok.run(TaskSpec(goal="g", worker="limited", verifier="limited"))
        events = [event async for event in dagbok.events(result.run)]
    assert result.json() == "slow down"
    failed = [event.at_ms for event in events if event.type == "AttemptFailed"]
    opened = [event.at_ms for event in events if event.type == "AttemptOpened"]
    assert opened[1] - failed[0] >= 300
    assert opened[-1] - failed[1] >= 400
