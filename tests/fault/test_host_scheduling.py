"""Work goes on wherever there is a place: no batch waits for its slowest, no run for a paused one, no tenant for
another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from dagbok import Candidate, Code, Dagbok, Limits, Outcome, Refused, TaskContext, verifier, worker
from dagbok.agents.scheduler.dispatch.lane import WINDOW
from dagbok.events.errors import InvalidInput
from dagbok.events.run.events import RunPaused
from tests.support.hosts import TIMEOUT_S, events_of, hosted, spec, until, yes


async def test_a_slow_task_keeps_one_place_and_no_more(tmp_path: Path) -> None:
    gaps: list[float] = []
    release = asyncio.Event()
    last_s = 0.0

    @worker("mixed", concurrency=2)
    async def mixed(task: TaskContext) -> Outcome:
        nonlocal last_s
        if task.inputs == "slow":
            await release.wait()
            return Outcome.candidate("slow")
        if last_s:
            gaps.append(time.monotonic() - last_s)
        await asyncio.sleep(0.01)
        last_s = time.monotonic()
        return Outcome.candidate("quick")

    async with hosted(tmp_path, mixed) as dagbok:
        slow = await dagbok.start(spec("mixed", inputs="slow", priority=1))
        assert (await dagbok.run([spec("mixed") for _ in range(30)])).succeeded
        assert dagbok.status(slow) == "running"
        release.set()
        assert (await dagbok.wait(slow)).succeeded
    assert sorted(gaps)[len(gaps) // 2] < 0.05


async def test_threads_of_workers_and_verifiers_do_not_starve_each_other(tmp_path: Path) -> None:
    everybody = threading.Barrier(64)

    @worker("meets", concurrency=64)
    def meets(task: TaskContext) -> Outcome:
        if task.inputs == "wait":
            everybody.wait(TIMEOUT_S)
        return Outcome.candidate(1)

    @verifier("thread", version="1", concurrency=1)
    def thread(candidate: Candidate, task: TaskContext) -> bool:
        return True

    async with hosted(tmp_path, meets, thread) as dagbok:
        waiting = await dagbok.start([spec("meets", verifier="thread", inputs="wait") for _ in range(63)])
        await until(dagbok, lambda: dagbok.progress(waiting) == {"running": 63})
        # 63 threads are taken; the last one works, and its verifier is not kept waiting by them.
        assert (await dagbok.run([spec("meets", verifier="thread") for _ in range(5)])).succeeded
        assert (await dagbok.run(spec("meets", verifier="thread", inputs="wait"))).succeeded
        assert (await dagbok.wait(waiting)).succeeded


async def test_a_paused_run_takes_no_place_in_the_window(tmp_path: Path) -> None:
    release = asyncio.Event()

    @worker("gated", concurrency=1)
    async def gated(task: TaskContext) -> Outcome:
        if task.inputs == "first":
            await release.wait()
        return Outcome.candidate(1)

    async with hosted(tmp_path, gated) as dagbok:
        first = await dagbok.start(spec("gated", inputs="first"))
        paused = await dagbok.start([spec("gated") for _ in range(WINDOW + 20)])
        await dagbok.pause(paused)
        assert len(await events_of(dagbok, RunPaused)) == 1
        release.set()
        assert (await dagbok.wait(first)).succeeded
        assert (await dagbok.run([spec("gated") for _ in range(10)])).succeeded
        await dagbok.resume(paused)
        assert (await dagbok.wait(paused)).succeeded


async def test_two_runs_at_once_and_in_a_row_on_one_object(tmp_path: Path) -> None:
    @worker("echo", pure=True)
    async def echo(task: TaskContext) -> Outcome:
        return Outcome.candidate(task.inputs)

    async with hosted(tmp_path, echo) as dagbok:
        at_once = await asyncio.gather(*[dagbok.run(spec("echo", inputs=number)) for number in range(10)])
        assert [result.json() for result in at_once] == list(range(10))
        assert (await dagbok.run(spec("echo", inputs="next"))).json() == "next"


async def test_the_same_key_is_the_same_run_within_a_project_and_another_one_in_the_next(tmp_path: Path) -> None:
    @worker("echo")
    async def echo(task: TaskContext) -> Outcome:
        return Outcome.candidate(f"{task.tenant}/{task.project}")

    async with hosted(tmp_path, echo) as dagbok:
        results = [
            await dagbok.run(spec("echo"), tenant=tenant, project=project, key="k")
            for tenant, project in (("acme", "a"), ("acme", "b"), ("rival", "a"), ("acme", "a"))
        ]
        assert [result.json() for result in results] == ["acme/a", "acme/b", "rival/a", "acme/a"]
        assert len({result.run for result in results}) == 3


async def test_a_foreign_tenant_sees_and_touches_nothing(tmp_path: Path) -> None:
    release = asyncio.Event()

    @worker("waits")
    async def waits(task: TaskContext) -> Outcome:
        await release.wait()
        return Outcome.candidate("mine")

    async with hosted(tmp_path, waits) as dagbok:
        run = await dagbok.start(spec("waits", id="t"), tenant="acme", project="docs")
        await until(dagbok, lambda: dagbok.progress(run, tenant="acme", project="docs") == {"running": 1})
        for tenant, project in (("rival", "docs"), ("acme", "other"), ("local", "default")):
            await _sees_nothing(dagbok, run, tenant, project)
        release.set()
        assert (await dagbok.wait(run, tenant="acme", project="docs")).json() == "mine"


async def _sees_nothing(dagbok: Dagbok, run: str, tenant: str, project: str) -> None:
    assert dagbok.status(run, tenant=tenant, project=project) is None
    for look in (dagbok.progress, dagbok.unserved):
        with pytest.raises(Refused) as hidden:
            look(run, tenant=tenant, project=project)
        assert hidden.value.code == Code.NOT_FOUND
    for steer in (dagbok.pause, dagbok.resume, dagbok.cancel, dagbok.wait, dagbok.result):
        with pytest.raises(Refused) as refused:
            await steer(run, tenant=tenant, project=project)
        assert refused.value.code == Code.NOT_FOUND
    with pytest.raises(Refused) as refused:
        await dagbok.resolve(run, "t", tenant=tenant, project=project)
    assert refused.value.code == Code.NOT_FOUND
    with pytest.raises(Refused) as refused:
        await dagbok.set_limits(run, Limits(max_open=2_000), tenant=tenant, project=project)
    assert refused.value.code == Code.NOT_FOUND


async def test_a_small_run_of_another_tenant_does_not_wait_for_a_large_one(tmp_path: Path) -> None:
    order: list[str] = []

    @worker("notes", concurrency=1)
    async def notes(task: TaskContext) -> Outcome:
        order.append(task.tenant)
        await asyncio.sleep(0)
        return Outcome.candidate(1)

    async with hosted(tmp_path, notes) as dagbok:
        large = await dagbok.start([spec("notes") for _ in range(500)], tenant="large")
        assert (await dagbok.run([spec("notes") for _ in range(10)], tenant="small")).succeeded
        done = len(order)
        assert (await dagbok.wait(large, tenant="large")).succeeded
    # What was sent before it came (a window) goes first, then they take turns.
    assert done < 500
    assert order.count("small") == 10


async def test_a_tenant_has_no_more_attempts_at_once_than_its_limit_and_holds_back_nobody(tmp_path: Path) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    full = asyncio.Event()

    @worker("counted", concurrency=16)
    async def counted(task: TaskContext) -> Outcome:
        running[task.tenant] += 1
        most[task.tenant] = max(most[task.tenant], running[task.tenant])
        if running["large"] == 4:
            full.set()
        await full.wait()
        running[task.tenant] -= 1
        return Outcome.candidate(1)

    limits = {"small": 2, "large": 4}
    embedded = Dagbok.embedded(tmp_path, yes, counted, projector="none", tenant_limit=limits.get)
    async with asyncio.timeout(TIMEOUT_S), embedded as dagbok:
        small = await dagbok.start([spec("counted") for _ in range(12)], tenant="small")
        large = await dagbok.run([spec("counted") for _ in range(12)], tenant="large")
        assert large.succeeded
        assert (await dagbok.wait(small, tenant="small")).succeeded
    assert most == {"small": 2, "large": 4}


async def test_a_limit_for_every_tenant_is_above_zero(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="tenant_limit cannot be 0"):
        async with Dagbok.embedded(tmp_path, tenant_limit=0):
            pass
