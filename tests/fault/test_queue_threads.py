"""Sync workers and sync verifiers never starve each other: each key has threads of its own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from dagbok import Candidate, Outcome, TaskContext, verifier, worker
from tests.support.hosts import hosted, spec


async def test_64_sync_tasks_of_100_ms_are_done_together_while_verifiers_go_on(tmp_path: Path) -> None:
    reviewed: list[str] = []

    @worker("sleeps", concurrency=64)
    def sleeps(task: TaskContext) -> Outcome:
        time.sleep(0.1)
        return Outcome.candidate(1)

    @worker("steady")
    async def steady(task: TaskContext) -> Outcome:
        return Outcome.candidate(1)

    @verifier("looks", version="1", concurrency=2)
    def looks(candidate: Candidate, task: TaskContext) -> bool:
        reviewed.append(task.goal)
        return True

    async with hosted(tmp_path, sleeps, steady, looks) as dagbok:
        began_s = time.monotonic()
        many, few = await asyncio.gather(
            dagbok.run([spec("sleeps", verifier="looks", goal="sleep") for _ in range(64)]),
            dagbok.run([spec("steady", verifier="looks", goal="be there") for _ in range(20)]),
        )
        took_s = time.monotonic() - began_s
    assert many.succeeded
    assert few.succeeded
    # One after another they would take 6.4 s; the others are reviewed while they sleep.
    assert took_s < 2.0
    assert reviewed[0] == "be there"
    assert len(reviewed) == 84
