"""A process that appends to a SQLite log and says what was acknowledged; the tests start several of it and kill some.

    python -m tests.contract.sqlite_appender FILE NAME forever     20 appenders at once, two records each
    python -m tests.contract.sqlite_appender FILE NAME expect N    one appender: N times at the end that it has read

It prints `ready`, begins when it reads a line, and prints a line `offset value` for each append that was acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dagbok.events.errors import EndMoved
from dagbok.events.log.port import EVENTS, Record
from dagbok.events.log.sqlite import SqliteLog


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def append_forever(log: SqliteLog, name: str) -> None:
    async def appender(number: int) -> None:
        turn = 0
        while True:
            value = f"{name}/{number}/{turn}"
            offset = await log.append(EVENTS, 0, [Record("run:a", value.encode())] * 2)
            say(f"{offset} {value}")
            turn += 1

    await asyncio.gather(*(appender(number) for number in range(20)))


async def append_expecting(log: SqliteLog, name: str, count: int) -> None:
    conflicts = 0
    for turn in range(count):
        value = f"{name}/{turn}"
        while True:
            end = (await log.bounds(EVENTS, 0)).end
            await asyncio.sleep(0.0005)  # another process may come between
            try:
                offset = await log.append(EVENTS, 0, [Record("run:a", value.encode())], expect=end)
                break
            except EndMoved:
                conflicts += 1
        say(f"{offset} {value}")
    say(f"conflicts {conflicts}")


async def main(path: str, name: str, mode: str, *count: str) -> None:
    log = SqliteLog.open(Path(path))
    say("ready")
    sys.stdin.readline()
    if mode == "forever":
        await append_forever(log, name)
    else:
        await append_expecting(log, name, int(count[0]))
    await log.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
