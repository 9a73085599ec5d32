"""Processes on a cluster, steered from a test: see `member.py`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
END_S = 20.0
DIES_S = 60.0
LOGS_S = 60.0


class Member:
    """One of them."""

    def __init__(self, process: asyncio.subprocess.Process, roles: str, log: Path) -> None:
        self.process, self.roles, self.log = process, roles, log
        self._asking = asyncio.Lock()

    @classmethod
    async def begin(cls, bootstrap: str, prefix: str, folder: Path, roles: str, **environment: str) -> Member:
        """Start one. It is not ready yet."""
        log = folder / f"{roles}-{len(list(folder.glob('*.log')))}.log"
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.kafka_kills.member", bootstrap, prefix, str(folder), roles),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                env={**os.environ, **environment},
            )
        return cls(process, roles, log)

    @property
    def alive(self) -> bool:
        """It has not ended."""
        return self.process.returncode is None

    async def says(self, word: str) -> Any:
        """Wait until it says this; that it is ready it may say before."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            told = json.loads(line)
            if word in told:
                return told[word]
            assert "ready" in told, f"a member of {self.roles} said {told}, not {word!r}; see {self.log}"
        raise AssertionError(f"a member of {self.roles} ended and never said {word!r}; see {self.log}")

    async def ask(self, **told: Any) -> Any:
        """Tell it something, and what it says to it."""
        async with self._asking:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(told).encode() + b"\n")
            return await self.says(next(iter(told)))

    def send(self, number: signal.Signals) -> None:
        """A signal."""
        self.process.send_signal(number)

    async def kill(self) -> None:
        """Without a word."""
        if self.alive:
            self.process.kill()
            await self.process.wait()

    async def logged(self, wanted: Callable[[str], bool]) -> str:
        """Wait until what it has logged is so; all that it has logged."""
        async with asyncio.timeout(LOGS_S):
            while not wanted(text := self.log.read_text()):  # noqa: ASYNC110 – it is another process
                await asyncio.sleep(0.1)
        return text

    async def died(self) -> None:
        """Wait until it has ended, by a signal that it sent itself."""
        async with asyncio.timeout(DIES_S):
            assert await self.process.wait() == -signal.SIGKILL, f"see {self.log}"

    async def slept(self) -> None:
        """Wait until it has stopped itself."""
        status = Path(f"/proc/{self.process.pid}/stat")
        async with asyncio.timeout(DIES_S):
            while status.read_text().rpartition(")")[2].split()[0] != "T":  # noqa: ASYNC110 – it tells nobody
                await asyncio.sleep(0.05)

    async def leave(self) -> None:
        """In order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(END_S):
            assert await self.process.wait() == 0, f"see {self.log}"
