"""A process on a cluster, steered by lines of JSON: `python -m tests.kafka_kills.member BOOTSTRAP PREFIX FOLDER ROLES`.

`ROLES`: some of `scheduler`, `worker`, `verifier` and `projector`, with commas. It says `{"ready": process}` first,
and for each line that it is told:

    {"partitions": role}    →  {"partitions": [those that it has in that role]}
    {"image": partition}    →  {"image": path}: its state, written there once it decides for it

It ends in order when its input ends, and with status 1 and a line `{"failed": …}` when a part of it fails.
Environment: `MEMBER_TABLES` is where a projector writes (`Place.address`), `MEMBER_CLOCK_MS` how far its clock is off,
`MEMBER_VERSION` a version of the code (`versions.py`), `MEMBER_SNAPSHOT_BYTES` when a snapshot is due, and
`MEMBER_SLEEP=place:3` has it stop itself (SIGSTOP) when it reaches a place of `faultpoints` for the third time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import structlog

from dagbok.agents.hosting.services import Services
from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.kafka.projector import ProjectorService
from dagbok.agents.workers.definitions import Registry
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.run.values import AttemptKind
from dagbok.projections.patience import patiently
from tests.kafka_kills.versions import sleep_at, use_version
from tests.kafka_kills.workload import definitions
from tests.support.places import open_address
from tests.support.snapshotting import image

SESSION_S = 1.5
CLOCK_MS = int(os.environ.get("MEMBER_CLOCK_MS", "0"))
POOL = "default"
SERVING: dict[str, AttemptKind] = {"worker": "work", "verifier": "verify"}
SNAPSHOT_BYTES = int(os.environ.get("MEMBER_SNAPSHOT_BYTES", "20000"))


def say(**told: Any) -> None:
    """One line."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def clock_ms() -> int:
    """The clock of this machine."""
    return system_ms() + CLOCK_MS


def wait(error: DagbokError, delay_s: float) -> None:
    """One line for each try."""
    sys.stderr.write(f"waiting: {error}\n")


class Roles:
    """What it does beside listening."""

    def __init__(self, process: KafkaProcess, names: str) -> None:
        self.process, self._services = process, Services(process.failure)
        self.projector: ProjectorService | None = None
        if "scheduler" in names:
            process.schedule(snapshot_bytes=SNAPSHOT_BYTES)
        if kinds := [kind for role, kind in SERVING.items() if role in names]:
            process.work([POOL], kinds)
        if "projector" in names:
            self._services.serve(self._project())

    def partitions(self, role: str) -> list[int]:
        """What it has in a role."""
        if role == "scheduler":
            scheduler = self.process.scheduler
            assert scheduler is not None
            return [n for n in range(self.process.log.partitions) if scheduler.deciding(n) is not None]
        if role == "projector":
            return [] if self.projector is None else sorted(self.projector.projecting)
        return sorted(self.process.queue.readers[SERVING[role], POOL].partitions)

    async def obey(self, told: dict[str, Any]) -> None:
        """Do what a line says."""
        if "partitions" in told:
            say(partitions=self.partitions(told["partitions"]))
        elif "image" in told:
            assert self.process.scheduler is not None
            owner = (await self.process.scheduler.owned(told["image"])).owner
            async with owner.between_batches:
                path = Path(sys.argv[3]) / f"image-{os.getpid()}-{told['image']}"
                path.write_bytes(image(owner.state))
                say(image=str(path))

    async def listen(self, lines: asyncio.StreamReader) -> None:
        """Until the input ends."""
        async with asyncio.TaskGroup() as group:
            while line := await lines.readline():
                group.create_task(self.obey(json.loads(line)))

    async def end(self) -> None:
        """In order."""
        await self._services.end()
        await self.process.close()

    async def _project(self) -> None:
        address = os.environ["MEMBER_TABLES"]
        tables = await patiently(lambda: asyncio.to_thread(open_address, address), wait)
        log = self.process.log
        try:
            self.projector = ProjectorService(log.settings, log, tables, session_s=SESSION_S)
            await self.projector.run()
        finally:
            await asyncio.to_thread(tables.close)


async def main(bootstrap: str, prefix: str, folder: str, roles: str) -> int:
    """The exit status."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    registry = Registry()
    for definition in definitions():
        registry.add(definition)
    settings = KafkaSettings(bootstrap_servers=bootstrap, prefix=prefix)
    process = await patiently(
        lambda: KafkaProcess.open(settings, folder, registry, session_s=SESSION_S, clock=clock_ms), wait
    )
    playing = Roles(process, roles)
    say(ready=process.process)
    listening = asyncio.create_task(playing.listen(lines))
    await asyncio.wait((listening, process.failure), return_when=asyncio.FIRST_COMPLETED)
    if process.failure.done():
        say(failed=repr(process.failure.result()))
        listening.cancel()
    await playing.end()
    return 1 if process.failure.done() else 0


if __name__ == "__main__":
    use_version(os.environ.get("MEMBER_VERSION", ""))
    sleep_at(os.environ.get("MEMBER_SLEEP", ""))
    sys.exit(asyncio.run(main(*sys.argv[1:])))
