"""Processes of the demonstration: `dagbok` as a deployment starts it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from dagbok.events.log.kafka_settings import KafkaSettings
from tests.servers.watchdog import Watchdog

DAGBOK: Final = (sys.executable, "-m", "dagbok")
LOOK_S: Final = 0.1


@dataclass(frozen=True)
class Place:
    """The cluster, a folder of our own, and after how many seconds of silence a process is taken for dead."""

    kafka: KafkaSettings
    folder: Path
    session_s: float

    @property
    def artifacts(self) -> str:
        """Where all processes keep them."""
        return str(self.folder / "artifacts")

    @property
    def environment(self) -> Mapping[str, str]:
        """What every process is told."""
        return {name: value for name, value in os.environ.items() if not name.startswith("DAGBOK_")} | {
            "DAGBOK_KAFKA_BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers,
            "DAGBOK_KAFKA_PREFIX": self.kafka.prefix,
            "DAGBOK_ARTIFACTS": self.artifacts,
            "DAGBOK_SESSION_S": str(self.session_s),
            "DAGBOK_LOG_FORMAT": "json",
        }


async def command(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ends, on the cluster of the place."""
    return await asyncio.to_thread(
        subprocess.run,
        [*DAGBOK, *arguments, "--kafka", place.kafka.bootstrap_servers],
        env=place.environment,
        capture_output=True,
        text=True,
        check=False,
    )


class RoleProcess:
    """A role, until `end` or `kill`; it dies with this process, however that ends. `process` is its name in the log,
    known once it is `ready`; of a scheduler, once it owns a partition. `at_s`: when it last said what, by the event of
    its log line, on the monotonic clock."""

    def __init__(self, name: str, child: asyncio.subprocess.Process) -> None:
        """Use `start`."""
        self.name, self.process, self.pid = name, "", child.pid
        self._child, self._watchdog = child, Watchdog(child.pid)
        self._port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._last = ""
        self.at_s: dict[str, float] = {}
        self._said = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, name: str, place: Place, *arguments: str) -> RoleProcess:
        """`dagbok` with these arguments."""
        child = await asyncio.create_subprocess_exec(
            *DAGBOK, *arguments, "--health-port", "0", env=place.environment, stderr=asyncio.subprocess.PIPE
        )
        return cls(name, child)

    async def ready(self) -> None:
        """Wait until it takes part. Raises `RuntimeError` when it has ended instead."""
        await asyncio.wait((self._port, self._reading), return_when=asyncio.FIRST_COMPLETED)
        while not self._reading.done():
            address = f"http://127.0.0.1:{self._port.result()}/health/ready"
            async with aiohttp.ClientSession() as session, session.get(address) as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(LOOK_S)
        raise RuntimeError(f"{self.name} has ended: {self._last}")

    async def said(self, event: str) -> None:
        """Wait until it has logged a line of this kind. Raises `RuntimeError` when it has ended instead."""
        async with self._said:
            await self._said.wait_for(lambda: event in self.at_s or self._reading.done())
        if event not in self.at_s:
            raise RuntimeError(f"{self.name} has ended: {self._last}")

    async def kill(self) -> None:
        """SIGKILL."""
        self._child.kill()
        await self._gone()

    async def end(self) -> None:
        """SIGTERM, and wait: it hands back what runs. Nothing when it has ended."""
        if self._child.returncode is None:
            self._child.terminate()
        await self._gone()

    async def _gone(self) -> None:
        await self._reading
        await self._child.wait()
        self._watchdog.dismiss()

    async def _read(self) -> None:
        """What it logs, so that the pipe does not fill."""
        assert self._child.stderr is not None
        async for raw in self._child.stderr:
            self._last = raw.decode("utf-8", "replace").strip()
            try:
                line = msgspec.json.decode(raw, type=dict[str, Any])
            except msgspec.MsgspecError:
                continue
            self.at_s[str(line.get("event"))] = time.monotonic()
            async with self._said:
                self._said.notify_all()
            if line.get("event") in ("worker.serving", "partition.owned"):
                self.process = line["process"]
            if line.get("event") == "health.serving":
                self._port.set_result(line["port"])
