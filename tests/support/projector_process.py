"""A projector in a process of its own; the tests start several of it and let some die.

    python -m tests.support.projector_process LOG TABLES BATCH [DIES]

TABLES: an address as `Place.address` gives it.

It prints `ready`, then tries one batch for each line that it reads, and answers with a line. At the end of its input it
takes in the rest and prints how many commits it wrote, and how many batches another process was faster with.

With DIES = n it kills itself (SIGKILL) inside the transaction of its n-th batch: behind all positions and the rows of
the graph, before the journal.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.feed import Feed
from dagbok.projections.tables.session import Session
from dagbok.projections.views.reports import ReportsView
from dagbok.projections.views.view import Told
from tests.support.places import open_address
from tests.support.views import views_with


class DyingReports(ReportsView):
    """Writes its rows, and takes the process with it at a batch."""

    def __init__(self, batches: int) -> None:
        self._left = batches

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        super().write(session, batch)
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(log_path: Path, address: str, batch_records: int, dies: int) -> None:
    log = SqliteLog.open(log_path)
    tables = open_address(address, views_with(DyingReports(dies)))
    feed = Feed(log, tables, 0, batch_records)
    say("ready")
    while await asyncio.to_thread(sys.stdin.readline):
        await feed.step()
        say("tried")
    while await feed.step():
        pass
    say(f"{feed.progress.commits} {feed.progress.lost}")
    tables.close()
    await log.close()


if __name__ == "__main__":
    _, LOG, TABLES, BATCH, *DIES = sys.argv
    asyncio.run(main(Path(LOG), TABLES, int(BATCH), int(DIES[0]) if DIES else 0))
