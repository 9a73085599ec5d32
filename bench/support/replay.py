"""The program behind `bench/replay.py`. `python -m bench.support.replay FOLDER fold|verify` recovers what it wrote."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.support.partition import Partition
from bench.support.snapshot import measure_in, rss_bytes
from dagbok.agents.scheduler.recover import NoSnapshots, Recovery
from dagbok.events.log.port import COMMANDS, EVENTS, Record
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.rule import GENESIS
from dagbok.events.run.events import Event
from dagbok.logs import configure
from dagbok.projections.partition import PartitionState
from dagbok.projections.reading import read_effective

ROOT = Path(__file__).resolve().parent.parent.parent
EVENTS_PER_TASK = 5
BATCH = 2_000
READ_COMMITS = 500


class Recorder:
    """Counts events and keeps records until they are written."""

    def __init__(self) -> None:
        self.partition = Partition(self._note)
        self.events = 0
        self.commits = 0
        self._unwritten: list[tuple[Record, Record]] = []

    async def write_to(self, log: SqliteLog) -> None:
        """Append what was decided since."""
        commands, commits = [command for command, _ in self._unwritten], [commit for _, commit in self._unwritten]
        await log.append(COMMANDS, 0, commands)
        await log.append(EVENTS, 0, commits, expect=self.commits)
        self.commits += len(commits)
        self._unwritten.clear()

    def _note(self, state: PartitionState, stream: str | None, events: Sequence[Event], size_bytes: int) -> None:
        key = stream or ""
        self.events += len(events)
        self._unwritten.append((Record(key, self.partition.command), Record(key, self.partition.head)))


def measure(folder: Path, events: int, snapshot_tasks: int) -> dict[str, float]:
    """Write the log, then recover it in fresh processes."""
    configure("error")
    written = asyncio.run(_write(folder / "log.db", events))
    figures: dict[str, float] = dict(written)
    for what in ("verify", "fold"):
        command = (sys.executable, "-m", "bench.support.replay", str((folder / "log.db").absolute()), what)
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        figures |= json.loads(done.stdout)
    figures["log_mb"] = (folder / "log.db").stat().st_size // 10**6
    figures["events_per_s"] = round(written["events"] / figures["fold_s"])
    figures["verify_events_per_s"] = round(written["events"] / figures["verify_s"])
    figures["snapshot_load_s"] = measure_in(folder, snapshot_tasks)["load_s"]
    return figures


async def _write(path: Path, events: int) -> dict[str, int]:
    recorder, log = Recorder(), SqliteLog.open(path)
    tasks = -(-events // EVENTS_PER_TASK)
    recorder.partition.grow(tasks)
    while recorder.partition.run.active:
        recorder.partition.finish(tasks=BATCH, commits_bytes=1 << 60)
        await recorder.write_to(log)
    await log.close()
    return {"events": recorder.events, "commits": recorder.commits}


async def _fold(log: SqliteLog) -> dict[str, float]:
    before_bytes, start_s = rss_bytes(), time.perf_counter()
    state = await Recovery(log, 0, NoSnapshots(0), log_refuses=True).fold()
    fold_s = time.perf_counter() - start_s
    if [run.status for run in state.runs.values()] != ["succeeded"]:
        raise RuntimeError("the run did not succeed")
    return {"fold_s": round(fold_s, 3), "fold_rss_mb": round((rss_bytes() - before_bytes) / 1e6, 1)}


async def _verify(log: SqliteLog) -> dict[str, float]:
    position, start_s = GENESIS, time.perf_counter()
    while True:
        position, commits = await read_effective(log, 0, position, READ_COMMITS)
        if not commits:
            return {"verify_s": round(time.perf_counter() - start_s, 3)}


async def _recover(path: Path, what: str) -> dict[str, float]:
    log = SqliteLog.open(path)
    try:
        return await (_fold(log) if what == "fold" else _verify(log))
    finally:
        await log.close()


if __name__ == "__main__":
    configure("error")
    print(json.dumps(asyncio.run(_recover(Path(sys.argv[1]), sys.argv[2]))))
