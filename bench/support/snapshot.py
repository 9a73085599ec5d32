"""The program behind `bench/snapshot.py`. `python -m bench.support.snapshot FOLDER` loads what it wrote."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.support.partition import Partition
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, Record
from dagbok.logs import configure
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.snapshots.keeper import DUE_BYTES, SnapshotKeeper
from dagbok.projections.snapshots.parts import SEGMENT_TASKS
from dagbok.projections.snapshots.slots import FileSlots

ROOT = Path(__file__).resolve().parent.parent.parent


def keeper_in(folder: Path, log: MemoryLog, due_bytes: int) -> SnapshotKeeper:
    store = local_store(folder).within(SNAPSHOT_CHUNKS)
    return SnapshotKeeper(log, 0, store, FileSlots(folder, 0), due_bytes=due_bytes)


async def snapshot(name: str, partition: Partition, keeper: SnapshotKeeper, folder: Path) -> dict[str, float]:
    """Take one now, whatever was written before."""
    keeper.note(partition.state, None, (), 1 << 40)
    before = size_bytes(folder)
    pauses_s: list[float] = []
    start_s = time.perf_counter()
    # A large one is encoded a few segments at a time, between the batches of an owner.
    for _ in range(len(partition.run.tasks) // SEGMENT_TASKS + 2):
        paused_s = time.perf_counter()
        keeper.save_if_due(partition.state)
        pauses_s.append(time.perf_counter() - paused_s)
    await keeper.settled()
    return {
        f"{name}_pause_ms": round(max(pauses_s) * 1000, 1),
        f"{name}_write_s": round(time.perf_counter() - start_s, 3),
        f"{name}_mb": round((size_bytes(folder) - before) / 1e6, 2),
    }


async def measure(tasks: int, folder: Path) -> dict[str, float]:
    keeper = keeper_in(folder, MemoryLog(), DUE_BYTES)
    partition = Partition(keeper.note)
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


def measure_in(folder: Path, tasks: int) -> dict[str, float]:
    """All figures; the snapshots lie in `folder`."""
    configure("error")
    figures = asyncio.run(measure(tasks, folder))
    command = (sys.executable, "-m", "bench.support.snapshot", str(folder.absolute()))
    loader = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    loaded: dict[str, float] = json.loads(loader.stdout)
    return figures | loaded


if __name__ == "__main__":
    configure("error")
    print(json.dumps(asyncio.run(load(Path(sys.argv[1])))))
