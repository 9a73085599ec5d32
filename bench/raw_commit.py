"""How fast this disk commits, and how fast the SQLite log appends on it.

    python bench/raw_commit.py [--json] [--folder FOLDER]

1. *raw*: one record of 600 bytes per transaction, bare SQLite as the log uses it (WAL, `synchronous=FULL`): the least
   that one durable append can take here. p50 and p99 in milliseconds.
2. *append*: the same record through `SqliteLog.append`, by 1, 16 and 256 appenders at once, each waiting for its
   acknowledgement before the next: records per second, p50 and p99 of one append, and CPU microseconds per record
   (the whole process, the appenders and the event loop included).

The files lie in a new folder inside FOLDER (default: the current one; a RAM disk would measure nothing).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from dagbok.events.log.port import COMMANDS, Record
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.log.sqlite_schema import BUSY_TIMEOUT_S, connect, prepare

VALUE = bytes(range(256)) * 2 + bytes(88)
RAW_COMMITS = 500
APPENDS = {1: 500, 16: 250, 256: 100}
"""Appends by each of that many appenders."""


def raw_commit(path: Path) -> dict[str, float]:
    prepare(path, BUSY_TIMEOUT_S)
    times_s: list[float] = []
    with closing(connect(path, BUSY_TIMEOUT_S)) as db:
        for _ in range(RAW_COMMITS):
            start_s = time.perf_counter()
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO commands (ts, key, value) VALUES (0, 'run:0123456789abcdef', ?)", (VALUE,))
            db.execute("COMMIT")
            times_s.append(time.perf_counter() - start_s)
    return percentiles_ms(times_s)


async def append(path: Path, appenders: int, each: int) -> dict[str, float]:
    log = SqliteLog.open(path)
    record = [Record("run:0123456789abcdef", VALUE)]
    times_s: list[float] = []

    async def appender() -> None:
        for _ in range(each):
            start_s = time.perf_counter()
            await log.append(COMMANDS, 0, record)
            times_s.append(time.perf_counter() - start_s)

    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    await asyncio.gather(*(appender() for _ in range(appenders)))
    wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
    await log.close()
    count = len(times_s)
    return {
        "appenders": appenders,
        "records_per_s": round(count / wall_s),
        "cpu_us_per_record": round(cpu_s / count * 1e6, 1),
        **percentiles_ms(times_s),
    }


def percentiles_ms(times_s: Sequence[float]) -> dict[str, float]:
    ascending = sorted(times_s)
    return {
        "p50_ms": round(ascending[len(ascending) // 2] * 1000, 3),
        "p99_ms": round(ascending[len(ascending) * 99 // 100] * 1000, 3),
    }


def measure(folder: Path) -> dict[str, dict[str, float] | list[dict[str, float]]]:
    return {
        "raw": raw_commit(folder / "raw.db"),
        "append": [
            asyncio.run(append(folder / f"append-{appenders}.db", appenders, each))
            for appenders, each in APPENDS.items()
        ],
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description="How fast this disk commits, and how fast the SQLite log appends.")
    arguments.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments.add_argument("--folder", type=Path, default=Path(), help="where the disk is (default: here)")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="raw-commit-") as folder:
        figures = measure(Path(folder))
    if options.json:
        print(json.dumps(figures))
        return
    for name, rows in figures.items():
        for row in rows if isinstance(rows, list) else [rows]:
            print(name, *(f"{figure} {value:,}" for figure, value in row.items()), sep="  ")


if __name__ == "__main__":
    main()
