"""Starts the projector process and starts it again when it dies; see `projector_child.py`."""

from __future__ import annotations

import asyncio
import sys

import structlog

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.projector_child import HALTED

logger = structlog.get_logger(__name__)

RESTART_PAUSE_S = 1.0


class ProjectorChild:
    """The projector of a data folder, as long as `run` runs."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder

    async def run(self) -> None:
        """Watch it until cancelled; then end it and wait. Returns when it halted for good: the log stays the truth,
        and the tables stay where they are."""
        while True:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dagbok.agents.hosting.projector_child", str(self._folder.root)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            try:
                _, errors = await child.communicate()
            except asyncio.CancelledError:
                await asyncio.shield(_end(child))
                raise
            logger.error(
                "projector.died", status=child.returncode, error=errors.decode(errors="replace")[-500:].strip()
            )
            if child.returncode == HALTED:
                return
            await asyncio.sleep(RESTART_PAUSE_S)


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        await asyncio.wait_for(child.wait(), 5.0)
    except TimeoutError:
        child.kill()
        await child.wait()
