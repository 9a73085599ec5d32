"""The program behind `bench/projector.py`."""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.support import meters
from dagbok.agents.scheduler.handle import handle
from dagbok.events.envelope import Sender, command_record, run_command
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, Record, StoredRecord
from dagbok.events.run.commands import RunCommand
from dagbok.events.run.values import Limits
from dagbok.projections.partition import PartitionState
from dagbok.projections.projector import Projector
from dagbok.projections.store import Tables
from dagbok.projections.task_graph.state import RunState
from dagbok.testing.act import submit_outcome, submit_verdict
from dagbok.testing.make import candidate, decompose, start, task
from tests.servers.postgres_system import SystemPostgres, find_programs

STREAM = "run:0123456789abcdef0123456789abcdef"
SENDER = Sender("local", "default", "user:local")
SHARD = 10_000
SCHEMA = "dagbok_bench"


def main(description: str | None) -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000, help="number of tasks")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--postgres", action="store_true", help="into the system's PostgreSQL, started for it")
    where.add_argument("--database", metavar="URL", help="into this PostgreSQL database")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--profile", action="store_true", help="print where the time goes (and take longer)")
    options = parser.parse_args()
    with _target(options.postgres, options.database) as target:
        figures = asyncio.run(_measure(options.tasks, target, options.profile))
    if options.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:20} {value:>14,}" for name, value in figures.items()))


class _Target(NamedTuple):
    """Where the tables are: how to open them, how large they are, and the CPU seconds of their server so far."""

    open: Callable[[], Tables]
    size_bytes: Callable[[Tables], int]
    server_cpu_s: Callable[[], float] = lambda: 0.0


@contextmanager
def _target(start_server: bool, url: str | None) -> Iterator[_Target]:
    if not start_server and url is None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tables.db"
            yield _Target(lambda: Tables.open(path), lambda _: path.stat().st_size)
    elif url is not None:
        yield _Target(lambda: Tables.connect(url, schema=SCHEMA), _schema_bytes)
    else:
        programs = find_programs()
        if programs is None:
            raise SystemExit("no PostgreSQL is installed here (Debian: postgresql)")
        settings = {"fsync": "on", "shared_buffers": "256MB", "max_wal_size": "4GB"}
        with SystemPostgres(programs, settings) as server:
            yield _Target(
                lambda: Tables.connect(server.url, schema=SCHEMA),
                _schema_bytes,
                lambda: meters.cpu_s(meters.children(server.pid)),
            )


def _schema_bytes(tables: Tables) -> int:
    """How large the tables and their indexes are; then they go."""
    tables_of = "FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace"
    with tables.writing() as connection:
        asked = connection.exec_driver_sql(f"SELECT sum(pg_total_relation_size(oid)) {tables_of}", (SCHEMA,))
        size_bytes = int(asked.scalar_one())
        connection.exec_driver_sql(f"DROP SCHEMA {SCHEMA} CASCADE")
    return size_bytes


async def _measure(tasks: int, target: _Target, profile: bool) -> dict[str, float]:
    log = MemoryLog()
    records = _records(tasks)
    await log.append(EVENTS, 0, records)
    with closing(target.open()) as tables:
        projector = Projector(log, tables)
        profiler = cProfile.Profile() if profile else None
        wall, cpu, server = time.perf_counter(), time.process_time(), target.server_cpu_s()
        if profiler is not None:
            await _profiled(projector, profiler)
        else:
            await projector.catch_up()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        server = target.server_cpu_s() - server
        size_bytes = target.size_bytes(tables)
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    figures = {
        "tasks": tasks,
        "commits": projector.progress.commits,
        "events": projector.progress.events,
        "wall_s": round(wall, 3),
        "events_per_s": round(projector.progress.events / wall),
        "tasks_per_s": round(tasks / wall),
        "commits_per_s": round(len(records) / wall),
        "cpu_ms_per_task": round(cpu / tasks * 1_000, 4),
        "bytes_per_task": size_bytes // tasks,
    }
    return figures | ({"server_cpu_ms_per_task": round(server / tasks * 1_000, 4)} if server else {})


async def _profiled(projector: Projector, profiler: cProfile.Profile) -> None:
    """Batches are written in a thread, where a profiler has to be switched on by itself."""
    inner = asyncio.to_thread

    async def outer(work: object, /, *args: object, **kwargs: object) -> object:
        return await inner(profiler.runcall, work, *args, **kwargs)  # type: ignore[arg-type]

    asyncio.to_thread = outer  # type: ignore[assignment]
    try:
        await projector.catch_up()
    finally:
        asyncio.to_thread = inner


class _Owner:
    """Decides commands and keeps the records of their commits."""

    def __init__(self) -> None:
        self.state = PartitionState(0)
        self.records: list[Record] = []
        self.now_ms = 1_700_000_000_000

    @property
    def run(self) -> RunState:
        return self.state.runs[STREAM]

    def send(self, command: RunCommand) -> None:
        """One command, one commit."""
        offset = len(self.records)
        self.now_ms += offset % 2
        envelope = run_command(SENDER, STREAM, command, id=f"{offset:032x}", now_ms=self.now_ms)
        decided = handle(self.state, StoredRecord(offset, self.now_ms, STREAM, command_record(envelope).value), 1)
        self.records.append(Record(STREAM, decided.value))


def _records(tasks: int) -> list[Record]:
    """A run of shards, each of which is decomposed into up to 10,000 children; everything passes at once."""
    owner = _Owner()
    sizes = [min(SHARD, tasks - first) for first in range(0, tasks, SHARD)]
    limits = Limits(max_tasks=2 * tasks + len(sizes), max_edges=4 * tasks, max_children=SHARD)
    owner.send(start(*[task(f"shard-{number}") for number in range(len(sizes))], limits=limits))
    for number, size in enumerate(sizes):
        children = [task(f"child-{number}-{place}", goal=f"count file {place}") for place in range(size)]
        owner.send(submit_outcome(owner.run, f"shard-{number}", decompose(*children)))
    while active := list(owner.run.active):
        for id in active:
            attempt = owner.run.tasks[id].attempt
            if attempt is not None and attempt.kind == "work":
                owner.send(submit_outcome(owner.run, id, candidate({"lines": 3, "of": id})))
            elif attempt is not None:
                owner.send(submit_verdict(owner.run, id, "pass"))
    return owner.records
