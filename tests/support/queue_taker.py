"""A process that takes from the queue of a folder: `python -m tests.support.queue_taker FOLDER PROCESS PLACES WORK_MS`.

Says `ready`, then the epoch of each attempt when it begins it. An attempt keeps its place for `WORK_MS` milliseconds,
for ever when that is negative.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.contract.queue_sites import LANE, open_queue, serve


async def main(folder: Path, process: str, count: int, work_ms: int) -> None:
    """Until it is killed."""
    queue = open_queue(folder, process)
    await queue.start()
    places = serve(queue, work=count)
    await queue.join()
    print("ready", flush=True)  # noqa: T201
    loop = asyncio.get_running_loop()

    def over() -> None:
        places.free["work"] += 1
        queue.freed(LANE)

    while True:
        for dispatch in await queue.take(LANE):
            places.free["work"] -= 1
            print(dispatch.epoch, flush=True)  # noqa: T201
            if work_ms >= 0:
                loop.call_later(work_ms / 1000, over)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
