"""A process on a cluster, steered by lines of JSON: `python -m tests.kafka_kills.member BOOTSTRAP PREFIX FOLDER ROLES`.

`ROLES`: `scheduler`, `worker`, or both with a comma. It says `{"ready": process}` first, and for each line that it is
told:

    {"partitions": true}    →  {"partitions": [those that it decides for]}
    {"image": partition}    →  {"image": path}: its state, written there once it decides for it

It ends in order when its input ends, and with status 1 and a line `{"failed": …}` when a part of it fails.
Environment: `MEMBER_CLOCK_MS` is how far its clock is off, `MEMBER_VERSION` a version of the code (`versions.py`),
`MEMBER_SNAPSHOT_BYTES` when a snapshot is due.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import structlog

from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.workers.definitions import Registry
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.projections.patience import patiently
from tests.kafka_kills.versions import use_version
from tests.kafka_kills.workload import definitions
from tests.support.snapshotting import image

SESSION_S = 1.5
CLOCK_MS = int(os.environ.get("MEMBER_CLOCK_MS", "0"))
SNAPSHOT_BYTES = int(os.environ.get("MEMBER_SNAPSHOT_BYTES", "20000"))


def say(**told: Any) -> None:
    """One line."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def clock_ms() -> int:
    """The clock of this machine."""
    return system_ms() + CLOCK_MS


def wait_for_broker(error: DagbokError, delay_s: float) -> None:
    """One line for each try."""
    sys.stderr.write(f"waiting: {error}\n")


async def obey(process: KafkaProcess, told: dict[str, Any]) -> None:
    """Do what a line says."""
    scheduler = process.scheduler
    assert scheduler is not None
    if "partitions" in told:
        held = [number for number in range(process.log.partitions) if scheduler.deciding(number) is not None]
        say(partitions=held)
    elif "image" in told:
        owner = (await scheduler.owned(told["image"])).owner
        async with owner.between_batches:
            path = Path(sys.argv[3]) / f"image-{os.getpid()}-{told['image']}"
            path.write_bytes(image(owner.state))
            say(image=str(path))


async def listen(process: KafkaProcess, lines: asyncio.StreamReader) -> None:
    """Until the input ends."""
    async with asyncio.TaskGroup() as group:
        while line := await lines.readline():
            group.create_task(obey(process, json.loads(line)))


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
        lambda: KafkaProcess.open(settings, folder, registry, session_s=SESSION_S, clock=clock_ms), wait_for_broker
    )
    if "scheduler" in roles:
        process.schedule(snapshot_bytes=SNAPSHOT_BYTES)
    if "worker" in roles:
        process.work(["default"])
    say(ready=process.process)
    listening = asyncio.create_task(listen(process, lines))
    await asyncio.wait((listening, process.failure), return_when=asyncio.FIRST_COMPLETED)
    if process.failure.done():
        say(failed=repr(process.failure.result()))
        listening.cancel()
    await process.close()
    return 1 if process.failure.done() else 0


if __name__ == "__main__":
    use_version(os.environ.get("MEMBER_VERSION", ""))
    sys.exit(asyncio.run(main(*sys.argv[1:])))
