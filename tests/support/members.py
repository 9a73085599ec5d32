"""Processes on one data folder, steered from a test: see `member.py`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60.0


class Member:
    """One of them. What it says that nobody asked for yet is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process, self.pid = process, process.pid
        self._said: list[dict[str, Any]] = []

    async def says(self, word: str) -> Any:
        """Wait until it says this; the value."""
        for index, told in enumerate(self._said):
            if word in told:
                return self._said.pop(index)[word]
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            told = json.loads(line)
            if word in told:
                return told[word]
            self._said.append(told)
        raise AssertionError(f"process {self.pid} ended and never said {word}; it said {self._said}")

    def tell(self, **told: Any) -> None:
        """Have it do something."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told).encode() + b"\n")

    async def start(self, count: int, **more: Any) -> str:
        """Start a run of so many tasks."""
        self.tell(start=count, **more)
        run: str = await self.says("started")
        return run

    async def wait(self, run: str, **more: Any) -> Any:
        """Wait until the run succeeded; what its tasks made."""
        self.tell(wait=run, **more)
        return await self.succeeded()

    async def succeeded(self) -> Any:
        """It says that a run that it was told to wait for succeeded; what its tasks made."""
        status, made = await self.says("ended")
        assert status == "succeeded"
        return made

    async def status(self, run: str, **more: Any) -> Any:
        """How it sees the run."""
        self.tell(status=run, **more)
        return await self.says("status")

    def send(self, number: signal.Signals) -> None:
        """A signal."""
        self.process.send_signal(number)

    async def kill(self) -> None:
        """Without a word."""
        self.process.kill()
        await self.process.wait()

    async def leave(self) -> None:
        """In good order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert await self.process.wait() == 0


@asynccontextmanager
async def joined(folder: Path, *, own: str = "auto", serves: bool = True) -> AsyncIterator[Member]:
    """A process that has joined the folder; killed at the end, if it is there still."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.member", str(folder), own, *(["serves"] if serves else [])),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    member = Member(process)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await member.says("joined")
            yield member
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            await process.wait()


def calls(folder: Path) -> list[tuple[int, str, int]]:
    """Process, task and epoch of every call of a worker."""
    path = folder / "calls.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(pid), task, int(epoch)) for pid, task, epoch in (line.split() for line in lines)]


def calls_by_process(folder: Path) -> Counter[int]:
    """How many calls each process had."""
    return Counter(pid for pid, _, _ in calls(folder))
