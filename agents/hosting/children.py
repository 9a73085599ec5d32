"""Starts the projector process and starts it again when it dies; see `projector_child.py`."""

from __future__ import annotations

import asyncio
import sys
import time

import structlog

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.projector_child import HALTED
from dagbok.agents.hosting.repeats import Repeats

logger = structlog.get_logger(__name__)

RESTART_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
TAIL_BYTES = 500


class ProjectorChild:
    """The projector of a data folder, as long as `run` runs. What kills it again and again (a full disk, damaged
    tables) is logged when it begins, and then at growing intervals with how often it came; the pauses between the
    starts grow too, up to half a minute."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder, self._repeats = folder, Repeats()

    async def run(self) -> None:
        """Watch it until cancelled; then end it and wait. Returns when it halted for good: the log stays the truth,
        and the tables stay where they are."""
        while True:
            try:
                child = await self._spawn()
            except OSError as error:
                # No memory, no process, no file to spare now: that passes.
                self._tell("projector.not_started", error=str(error))
            else:
                status, said = await _watch(child)
                self._tell("projector.died", status=status, error=said)
                if status == HALTED:
                    return
            await asyncio.sleep(min(RESTART_PAUSE_S * 2.0 ** min(self._repeats.in_a_row - 1, 10), LONGEST_PAUSE_S))

    def _tell(self, event: str, **what: str | int) -> None:
        times = self._repeats.count(f"{event} {what}", time.monotonic())
        if times:
            logger.error(event, times=times, **what)

    async def _spawn(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dagbok.agents.hosting.projector_child", str(self._folder.root)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )


async def _watch(child: asyncio.subprocess.Process) -> tuple[int, str]:
    """Its exit status and its last words, when it has ended by itself."""
    try:
        said = await tail(child.stderr) if child.stderr is not None else b""
        status = await child.wait()
    except asyncio.CancelledError:
        await asyncio.shield(_end(child))
        raise
    return status, said.decode(errors="replace").strip()


async def tail(stream: asyncio.StreamReader, size_bytes: int = TAIL_BYTES) -> bytes:
    """The last `size_bytes` of a stream, when it has ended. No more than that and one block is ever kept."""
    kept = b""
    while block := await stream.read(65_536):
        kept = (kept + block)[-size_bytes:]
    return kept


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        async with asyncio.timeout(5.0):
            await child.wait()
    except TimeoutError:
        child.kill()
        await child.wait()
