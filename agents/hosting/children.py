"""Starts the projector process and starts it again when it dies; see `projector_child.py`."""

from __future__ import annotations

import asyncio
import sys

import structlog

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.projector_child import HALTED

logger = structlog.get_logger(__name__)

RESTART_PAUSE_S = 1.0
TAIL_BYTES = 500


class ProjectorChild:
    """The projector of a data folder, as long as `run` runs."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder

    async def run(self) -> None:
        """Watch it until cancelled; then end it and wait. Returns when it halted for good: the log stays the truth,
        and the tables stay where they are."""
        while True:
            try:
                child = await self._spawn()
            except OSError as error:
                # No memory, no process, no file to spare now: that passes.
                logger.error("projector.not_started", error=str(error))
            else:
                if await _watch(child) == HALTED:
                    return
            await asyncio.sleep(RESTART_PAUSE_S)

    async def _spawn(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dagbok.agents.hosting.projector_child", str(self._folder.root)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )


async def _watch(child: asyncio.subprocess.Process) -> int:
    """Its exit status, when it has ended by itself."""
    try:
        said = await tail(child.stderr) if child.stderr is not None else b""
        status = await child.wait()
    except asyncio.CancelledError:
        await asyncio.shield(_end(child))
        raise
    logger.error("projector.died", status=status, error=said.decode(errors="replace").strip())
    return status


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
