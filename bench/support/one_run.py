"""One run, measured in this process: `python -m bench.support.one_run FOLDER TASKS` prints its figures as JSON."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import structlog

from bench.support import meters, workload
from bench.support.loop_watch import LoopWatch
from dagbok import Dagbok, RunResult
from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.body import decode_body
from dagbok.events.commit import split_value
from dagbok.events.run.events import RunSucceeded

LOOK_EVERY_S = 0.005
GIVE_UP_S = 600.0


class Figures(msgspec.Struct, frozen=True):
    """See `docs/performance.md`. Times begin when the run is started, host and projector being up."""

    wall_s: float
    tables_caught_up_s: float
    verified_tasks_per_s: float
    cpu_ms_per_task: float
    tables_cpu_ms_per_task: float | None
    peak_rss_mb: float
    bytes_per_task: float
    longest_block_ms: float
    ready_s: float


def measure(folder: Path, tasks: int) -> Figures:
    """Run it in an empty folder. Raises `RuntimeError` when it does not end as it should."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    return asyncio.run(_measure(DataFolder(folder), tasks))


async def _measure(folder: DataFolder, tasks: int) -> Figures:
    opened_s = time.perf_counter()
    async with Dagbok.embedded(folder.root, *workload.definitions()) as dagbok:
        await _tables_at(folder, 0)
        projectors = meters.children()
        with LoopWatch() as watch:
            start_tables_s = meters.cpu_s(projectors)
            start_s, start_cpu_s = time.perf_counter(), time.process_time()
            result = await dagbok.run(workload.root_task(tasks), limits=workload.limits(tasks))
            wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
        await _tables_at(folder, _check_log(folder))
        caught_up_s, tables_s = time.perf_counter() - start_s, meters.cpu_s(projectors) - start_tables_s
        _check_result(result, tasks)
    return Figures(
        wall_s=wall_s,
        tables_caught_up_s=caught_up_s,
        verified_tasks_per_s=tasks / wall_s,
        cpu_ms_per_task=cpu_s / tasks * 1000,
        tables_cpu_ms_per_task=tables_s / tasks * 1000 if projectors else None,
        peak_rss_mb=meters.peak_rss_mb(),
        bytes_per_task=_kept_bytes(folder) / tasks,
        longest_block_ms=watch.longest_s * 1000,
        ready_s=start_s - opened_s,
    )


async def _tables_at(folder: DataFolder, offset: int) -> None:
    """Wait until the projector has begun and all its views stand at `offset` or behind it."""
    async with asyncio.timeout(GIVE_UP_S):
        # Another process writes them: this one has no event to wait for.
        while True:
            at = _number(folder.tables, "SELECT min(next_offset) FROM positions")
            if at is not None and at >= offset:
                return
            await asyncio.sleep(LOOK_EVERY_S)


def _check_log(folder: DataFolder) -> int:
    """Make sure that the log ends with `RunSucceeded`, as another process would read it; where it ends."""
    value: bytes
    with closing(sqlite3.connect(f"{folder.log.as_uri()}?mode=ro", uri=True)) as db:
        (end, value) = db.execute("SELECT id, value FROM events ORDER BY id DESC LIMIT 1").fetchone()
    parts = split_value(value)
    events = decode_body(parts[1], parts[0].codec, parts[0].raw_size) if parts else []
    if not events or not isinstance(events[-1], RunSucceeded):
        raise RuntimeError("the last commit of the log does not say that the run succeeded")
    return int(end)


def _check_result(result: RunResult, tasks: int) -> None:
    expected = {"verified": workload.verified_in_all(tasks)}
    if dict(result.counts) != expected or result.json() != tasks:
        raise RuntimeError(f"{result.status}: {dict(result.counts)} with result {result.json()!r}, expected {expected}")


def _kept_bytes(folder: DataFolder) -> int:
    """What has to be kept: the log, its write-ahead log written into it, and the artifacts."""
    log = sum([path.stat().st_size for path in folder.root.glob(f"{folder.log.name}*")])
    return log + meters.size_bytes(folder.artifacts)


def _number(path: Path, query: str) -> int | None:
    """The answer of a SQLite file; none as long as it cannot give one."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            (value,) = db.execute(query).fetchone()
    except sqlite3.OperationalError:
        return None
    return value if isinstance(value, int) else None


if __name__ == "__main__":
    print(msgspec.json.encode(measure(Path(sys.argv[1]).absolute(), int(sys.argv[2]))).decode())
