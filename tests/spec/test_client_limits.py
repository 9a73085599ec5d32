"""Limits of a run that is started again are raised, never lowered."""

from __future__ import annotations

from pathlib import Path

from dagbok import Candidate, Dagbok, Limits, Outcome, TaskContext, TaskSpec, verifier, worker


@worker("wait", pure=True)
async def wait(task: TaskContext) -> Outcome:
    return Outcome.blocked("not yet")


@verifier("check", version="1")
async def check(candidate: Candidate, task: TaskContext) -> bool:
    return True


async def test_the_same_start_with_higher_limits_raises_them(tmp_path: Path) -> None:
    task = TaskSpec(id="t", goal="g", worker="wait", verifier="check")
    async with Dagbok.embedded(tmp_path, wait, check, projector="none") as dagbok:
        run = await dagbok.start(task, key="k", limits=Limits(max_tasks=10, max_open=5))
        assert await dagbok.start(task, key="k", limits=Limits(max_tasks=20, max_open=2)) == run
        state = dagbok.host.owner.state.runs[f"run:{run}"]
        assert (state.limits.max_tasks, state.limits.max_open) == (20, 5)
