"""The program behind `bench/decompose.py`."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

import structlog

from bench.raw_commit import raw_commit
from bench.support.loop_watch import LoopWatch
from dagbok import Candidate, Dagbok, Limits, Outcome, TaskContext, TaskSpec, Verifier, Worker, verifier, worker
from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.body import decode_body
from dagbok.events.commit import split_value
from dagbok.events.run import events as e

BEATING = 10
LEASE_S = 1.0


class Bench:
    """One run: its workers share these events. `decomposed_s`: when the decomposition was returned."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.decomposed_s = 0.0
        self.beating = 0
        self.all_beat = asyncio.Event()
        self.first_child = asyncio.Event()
        self.done = asyncio.Event()

    def definitions(self) -> Sequence[Worker | Verifier]:
        """Workers that wait for each other, and a verifier that passes."""

        @worker("heart")
        async def heart(task: TaskContext) -> Outcome:
            self.beating += 1
            if self.beating == BEATING:
                self.all_beat.set()
            await self.done.wait()
            return Outcome.candidate("ok")

        @worker("split", pure=True)
        async def split(task: TaskContext) -> Outcome:
            outcome = Outcome.decompose(
                [TaskSpec(goal=f"task {number}", worker="child", verifier="always") for number in range(self.tasks)]
            )
            self.decomposed_s = time.perf_counter()
            return outcome

        @worker("child", pure=True)
        async def child(task: TaskContext) -> Outcome:
            self.first_child.set()
            await self.done.wait()
            return Outcome.candidate("ok")

        @verifier("always", version="1")
        async def always(candidate: Candidate, task: TaskContext) -> bool:
            return True

        return heart, split, child, always


def measure(folder: Path, tasks: int, repeat: int) -> dict[str, float]:
    """Medians of `repeat` runs. Raises `RuntimeError` when a lease was lost."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    runs = [asyncio.run(_once(folder.absolute() / str(number), tasks)) for number in range(repeat)]
    figures = {name: round(median([run[name] for run in runs]), 2) for name in runs[0]}
    return {"tasks": tasks, **figures, "raw_commit_p50_ms": raw_commit(folder / "raw.db")["p50_ms"]}


async def _once(folder: Path, tasks: int) -> dict[str, float]:
    bench = Bench(tasks)
    async with Dagbok.embedded(folder, *bench.definitions(), projector="none") as dagbok:
        hearts = await dagbok.start(
            [TaskSpec(goal=f"beat {n}", worker="heart", verifier="always", lease_s=LEASE_S) for n in range(BEATING)]
        )
        await bench.all_beat.wait()
        with LoopWatch() as watch:
            run = await dagbok.start(
                TaskSpec(goal="split", worker="split", verifier="always"),
                limits=Limits(max_tasks=tasks + 1, max_edges=tasks),
            )
            await asyncio.wait_for(bench.first_child.wait(), 60)
            accepted_s = time.perf_counter()
            await asyncio.sleep(LEASE_S)  # so that a lease which was not renewed in the meantime runs out
        await dagbok.cancel(run)
        bench.done.set()
        if not (await dagbok.wait(hearts)).succeeded:
            raise RuntimeError("the run with the heartbeats did not succeed")
    return {
        "accept_ms": (accepted_s - bench.decomposed_s) * 1000,
        "longest_block_ms": watch.longest_s * 1000,
        **_of_log(DataFolder(folder), tasks),
    }


def _of_log(folder: DataFolder, tasks: int) -> dict[str, float]:
    renewals = lost = size_bytes = 0
    with closing(sqlite3.connect(f"{folder.log.as_uri()}?mode=ro", uri=True)) as db:
        values: list[bytes] = [value for (value,) in db.execute("SELECT value FROM events ORDER BY id")]
    for value in values:
        parts = split_value(value)
        for event in decode_body(parts[1], parts[0].codec, parts[0].raw_size) if parts else ():
            renewals += len(event.accepted) if isinstance(event, e.LeasesRenewed) else 0
            lost += isinstance(event, e.AttemptLost)
            if isinstance(event, e.TasksAdded) and len(event.tasks) == tasks:
                size_bytes = len(value)
    if lost:
        raise RuntimeError(f"{lost} attempts lost their lease")
    return {"renewals": renewals, "lost": lost, "bytes_per_child": size_bytes / tasks}
