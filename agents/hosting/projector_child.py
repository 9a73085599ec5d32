"""The projector as a process of its own: `python -m dagbok.agents.hosting.projector_child FOLDER`.

Reads the log, writes the tables, and ends when its standard input does: so it never outlives the host that started it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.errors import DagbokError
from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.projector import Projector
from dagbok.projections.store import Tables

HALTED = 3
"""Exit status when reading on would be wrong: starting it again would not help."""


async def project(folder: DataFolder) -> None:
    """Until standard input ends."""
    log = SqliteLog.open(folder.log)
    tables = Tables.open(folder.tables)
    try:
        projecting = asyncio.create_task(Projector(log, tables).run())
        parent = asyncio.create_task(_end_of_input())
        done, rest = await asyncio.wait((projecting, parent), return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for task in done:
            task.result()
    finally:
        await log.close()
        tables.close()


async def _end_of_input() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


def main() -> int:
    """Exit status: 0 when the host ended, 3 when the log cannot be read on."""
    try:
        asyncio.run(project(DataFolder(Path(sys.argv[1]))))
    except DagbokError as error:
        sys.stderr.write(f"{error}\n")
        return 1 if error.retry else HALTED
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
