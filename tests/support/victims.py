"""Runs `victim.py` on a data folder: to its end, or until it is killed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

VICTIM = Path(__file__).with_name("victim.py")
TIMEOUT_S = 60.0


async def start_victim(folder: Path, fault: str = "") -> asyncio.subprocess.Process:
    """The process, with its output readable."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, str(VICTIM), str(folder)),
        env={**os.environ, "DAGBOK_FAULT": fault},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def run_victim(folder: Path, fault: str = "") -> tuple[int, str]:
    """Exit status and output."""
    process = await start_victim(folder, fault)
    output, _ = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    return process.returncode or 0, output.decode()


def calls(folder: Path) -> Counter[str]:
    """How often each worker was called for each task: `work child-3`."""
    path = folder / "calls.txt"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()
