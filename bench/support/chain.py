"""The program behind `bench/chain.py`."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from unittest import mock

import structlog

from bench.raw_commit import percentiles_ms, raw_commit
from dagbok import Candidate, Dagbok, Outcome, TaskContext, TaskSpec, verifier, worker
from dagbok.events.log import sqlite_schema, sqlite_writer

_called_s: list[float] = []


@worker("link", pure=True)
async def link(task: TaskContext) -> Outcome:
    """Note when it was called."""
    _called_s.append(time.perf_counter())
    return Outcome.candidate("ok")


@verifier("always", version="1")
async def always(candidate: Candidate, task: TaskContext) -> bool:
    """Pass at once."""
    return True


def measure(folder: Path, tasks: int, repeat: int) -> dict[str, float]:
    """Medians of `repeat` chains, with raw commits between them."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    steps_s: list[float] = []
    raws_ms: list[float] = []
    cpus_ms: list[float] = []
    for number in range(repeat):
        raws_ms.append(raw_commit(folder / f"raw-{number}.db")["p50_ms"])
        began_cpu_s = time.process_time()
        steps_s += asyncio.run(_chain(folder / f"chain-{number}", tasks))
        cpus_ms.append((time.process_time() - began_cpu_s) / tasks * 1000)
    with _counted_commits() as commits:
        asyncio.run(_chain(folder / "counted", tasks))
    percentiles = percentiles_ms(steps_s)
    raw_ms, per_task = median(raws_ms), commits[0] / tasks
    return {
        "tasks": tasks,
        **percentiles,
        "raw_p50_ms": raw_ms,
        "transactions_per_task": round(per_task, 2),
        "ratio": round(percentiles["p50_ms"] / (per_task * raw_ms), 2),
        "aim_p50_ms": round(1.5 * 4 * raw_ms + 2, 3),
        "cpu_ms_per_task": round(median(cpus_ms), 3),
    }


async def _chain(folder: Path, tasks: int) -> list[float]:
    """Seconds from each call of the worker to the next."""
    _called_s.clear()
    specs = [
        TaskSpec(
            id=f"link-{number}",
            goal="wait for the one before",
            worker="link",
            verifier="always",
            depends_on=(f"link-{number - 1}",) if number else (),
        )
        for number in range(tasks)
    ]
    async with Dagbok.embedded(folder, link, always) as dagbok:
        result = await dagbok.run(specs)
    if result.status != "succeeded" or len(_called_s) != tasks:
        raise RuntimeError(f"the run {result.status} after {len(_called_s)} of {tasks} calls")
    return [after - before for before, after in pairwise(_called_s)]


@contextmanager
def _counted_commits() -> Iterator[list[int]]:
    """How often the writers of logs commit, as SQLite itself tells."""
    count = [0]

    def traced(statement: str) -> None:
        count[0] += statement == "COMMIT"

    def connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
        db = sqlite_schema.connect(path, busy_timeout_s)
        db.set_trace_callback(traced)
        return db

    with mock.patch.object(sqlite_writer, "connect", connect):
        yield count
