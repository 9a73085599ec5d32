"""What a snapshot costs: how long it holds up the owner, what it writes, and how long it takes to load.

    python bench/snapshot.py [--tasks N] [--json] [--folder FOLDER]

The real decider makes one run of N tasks (in shards of 10,000) and finishes half of them. Then:

- `first_*`: a snapshot of all of it; `next_*`: one after as many more tasks as make 16 MiB of commits. `pause_ms` is
  how long deciding stops, `write_s` how long the writing takes beside it, `mb` what it adds to the folder (10⁶ bytes).
- `load_s` and `load_rss_mb`: a fresh process loads the last snapshot; what that adds to its memory.
  `load_blocks_ms`: the longest time that the event loop of that process stood still.

The files lie in a new folder inside FOLDER (default: the current one; a RAM disk would measure nothing).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from dagbok.agents.scheduler.handle import handle
from dagbok.events.canonical import sha256_hex
from dagbok.events.envelope import Sender, command_record, run_command
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, Record, StoredRecord
from dagbok.events.run.commands import RunCommand
from dagbok.events.run.events import Event
from dagbok.events.run.values import Limits
from dagbok.logs import configure
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots.keeper import DUE_BYTES, SnapshotKeeper
from dagbok.projections.snapshots.slots import FileSlots
from dagbok.projections.task_graph.state import RunState
from dagbok.testing.act import submit_outcome, submit_verdict
from dagbok.testing.make import candidate, decompose, start, task

NAME = "0123456789abcdef0123456789abcdef"
SENDER = Sender("local", "default", "user:local")
SHARD = 10_000


class Partition:
    """A partition that decides without a log: the last commit is all that a snapshot asks for."""

    def __init__(self, keeper: SnapshotKeeper) -> None:
        self.state = PartitionState(0)
        self.head = b""
        self.commits_bytes = 0
        self._keeper = keeper
        self._sent = 0

    @property
    def run(self) -> RunState:
        return self.state.runs["run:" + NAME]

    def send(self, command: RunCommand) -> Sequence[Event]:
        id = sha256_hex(str(self._sent).encode())[:32]
        envelope = run_command(SENDER, "run:" + NAME, command, id=id, now_ms=self._sent)
        decided = handle(self.state, StoredRecord(self._sent, self._sent, "", command_record(envelope).value), 1)
        self._sent += 1
        self.head = decided.value
        self.commits_bytes += len(decided.value)
        self._keeper.note(self.state, decided.stream, decided.events, len(decided.value))
        return decided.events

    def grow(self, tasks: int) -> None:
        """A root, shards, and N tasks below them."""
        self.send(start(task("root"), limits=Limits(max_tasks=2 * tasks + 100, max_edges=4 * tasks + 1_000)))
        shards = [f"shard-{number}" for number in range(-(-tasks // SHARD))]
        self.send(submit_outcome(self.run, "root", decompose(*map(task, shards))))
        for number, shard in enumerate(shards):
            children = range(number * SHARD, min(tasks, (number + 1) * SHARD))
            specs = [task(f"file-{child:06}", contract={"path": f"docs/file-{child}.md"}) for child in children]
            self.send(submit_outcome(self.run, shard, decompose(*specs)))

    def finish(self, *, tasks: int, commits_bytes: int) -> None:
        """Run and verify tasks until there were so many, or so many bytes of commits."""
        end_bytes = self.commits_bytes + commits_bytes
        while tasks > 0 and self.run.active and self.commits_bytes < end_bytes:
            for name in list(self.run.active):
                node = self.run.tasks[name]
                if node.attempt is not None and node.attempt.kind == "work":
                    self.send(submit_outcome(self.run, name, candidate({"of": name}, outputs={"lines": 1})))
                else:
                    self.send(submit_verdict(self.run, name, "pass"))
                    tasks -= 1


def keeper_in(folder: Path, log: MemoryLog, due_bytes: int) -> SnapshotKeeper:
    store = local_store(folder).within(SNAPSHOT_CHUNKS)
    return SnapshotKeeper(log, 0, store, FileSlots(folder, 0), due_bytes=due_bytes)


async def snapshot(name: str, partition: Partition, keeper: SnapshotKeeper, folder: Path) -> dict[str, float]:
    """Take one now, whatever was written before."""
    keeper.note(partition.state, None, (), 1 << 40)
    before = size_bytes(folder)
    start_s = time.perf_counter()
    keeper.save_if_due(partition.state)
    cut_s = time.perf_counter()
    await keeper.settled()
    return {
        f"{name}_pause_ms": round((cut_s - start_s) * 1000, 1),
        f"{name}_write_s": round(time.perf_counter() - cut_s, 3),
        f"{name}_mb": round((size_bytes(folder) - before) / 1e6, 2),
    }


async def measure(tasks: int, folder: Path) -> dict[str, float]:
    keeper = keeper_in(folder, MemoryLog(), DUE_BYTES)
    partition = Partition(keeper)
    partition.grow(tasks)
    partition.finish(tasks=tasks // 2, commits_bytes=1 << 60)
    figures = await snapshot("first", partition, keeper, folder)
    partition.finish(tasks=tasks // 4, commits_bytes=DUE_BYTES)
    figures |= await snapshot("next", partition, keeper, folder)
    (folder / "head").write_bytes(partition.head)
    (folder / "offset").write_text(str(partition.state.position.head_offset))
    return figures


async def load(folder: Path) -> dict[str, float]:
    """In a process that has nothing else in memory."""
    offset = int((folder / "offset").read_text())
    log = MemoryLog()
    await log.append(EVENTS, 0, [Record("", b"")] * offset + [Record("", (folder / "head").read_bytes())])
    keeper = keeper_in(folder, log, DUE_BYTES)
    watch = asyncio.create_task(longest_standstill_s())
    await asyncio.sleep(0)
    gc.collect()
    before_bytes, start_s = rss_bytes(), time.perf_counter()
    state = await keeper.load()
    load_s = time.perf_counter() - start_s
    await asyncio.sleep(0.01)
    watch.cancel()
    if not state.runs:
        raise SystemExit("the snapshot was not loaded")
    return {
        "load_s": round(load_s, 3),
        "load_rss_mb": round((rss_bytes() - before_bytes) / 1e6, 1),
        "load_blocks_ms": round(1000 * (await watch), 1),
    }


async def longest_standstill_s() -> float:
    """Runs until it is cancelled; the longest time in which it had no turn."""
    longest_s, last_s = 0.0, time.perf_counter()
    try:
        while True:
            await asyncio.sleep(0.001)
            now_s = time.perf_counter()
            longest_s, last_s = max(longest_s, now_s - last_s), now_s
    except asyncio.CancelledError:
        return longest_s


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000, help="number of tasks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the disk is (default: here)")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    configure("error")
    if options.load is not None:
        print(json.dumps(asyncio.run(load(options.load))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="snapshot-") as folder:
        figures = asyncio.run(measure(options.tasks, Path(folder)))
        loader = subprocess.run(
            [sys.executable, __file__, "--load", folder], stdout=subprocess.PIPE, check=True, text=True
        )
        figures |= json.loads(loader.stdout)
    if options.json:
        print(json.dumps(figures))
        return
    print("\n".join(f"{name:16} {value:>12,}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
