"""How fast the projector is: a log of N tasks, each with a candidate and a passing verdict, into fresh tables.

    python bench/projector.py [--tasks N] [--json] [--profile]

The log is made by the real decider and kept in memory, so that nothing but the projector is measured.
`cpu_ms_per_task` is the time of the whole process while it catches up, the reading of the log included.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import tempfile
import time
from pathlib import Path

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

STREAM = "run:0123456789abcdef0123456789abcdef"
SENDER = Sender("local", "default", "user:local")
SHARD = 10_000


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000, help="number of tasks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--profile", action="store_true", help="print where the time goes (and take longer)")
    options = parser.parse_args()
    figures = asyncio.run(_measure(options.tasks, options.profile))
    if options.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:20} {value:>14,}" for name, value in figures.items()))


async def _measure(tasks: int, profile: bool) -> dict[str, float]:
    log = MemoryLog()
    records = _records(tasks)
    await log.append(EVENTS, 0, records)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.db"
        tables = Tables.open(path)
        projector = Projector(log, tables)
        profiler = cProfile.Profile() if profile else None
        wall, cpu = time.perf_counter(), time.process_time()
        if profiler is not None:
            await _profiled(projector, profiler)
        else:
            await projector.catch_up()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        tables.close()
        size_bytes = path.stat().st_size
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    return {
        "tasks": tasks,
        "commits": projector.progress.commits,
        "events": projector.progress.events,
        "wall_s": round(wall, 3),
        "tasks_per_s": round(tasks / wall),
        "commits_per_s": round(len(records) / wall),
        "cpu_ms_per_task": round(cpu / tasks * 1_000, 4),
        "bytes_per_task": size_bytes // tasks,
    }


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


if __name__ == "__main__":
    main()
