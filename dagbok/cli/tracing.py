"""The trace of a run that is in the log: as lines of an OTLP file, or to a receiver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from dagbok.agents.tracing.otlp_json import otlp_json
from dagbok.agents.tracing.span import Span
from dagbok.agents.tracing.stored import stored_batches
from dagbok.agents.tracing.switch import not_installed
from dagbok.cli import say
from dagbok.cli.exits import Exit
from dagbok.cli.interrupts import interruptible
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.reading import Reading, reading
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.ids import partition_of, run_stream
from dagbok.settings import Settings

BATCH_SPANS = 512
TRACES_PATH = "/v1/traces"


def print_trace(name: str, place: Place | None, output: Output | None) -> int:
    """One line for every `BATCH_SPANS` spans."""
    settings, _ = settle(place, output)
    asyncio.run(interruptible(_print(settings, name)))
    return Exit.SUCCEEDED


def send_trace(name: str, address: str | None, place: Place | None, output: Output | None) -> int:
    """Send it to the receiver at `address`, else to where the variables of OpenTelemetry say. Raises `InvalidInput`
    (`usage`)."""
    settings, how = settle(place, output)
    endpoint = None if address is None else endpoint_of(address)
    arrived, lost = asyncio.run(interruptible(_send(settings, name, endpoint)))
    if how.json:
        say.out_json({"arrived": arrived, "lost": lost})
    else:
        say.out(f"{arrived} spans arrived" + (f", {lost} did not: is the receiver there?" if lost else ""))
    return Exit.FAILED if lost else Exit.SUCCEEDED


def endpoint_of(address: str) -> str:
    """The full address of a receiver: without a path, that of traces. Raises `InvalidInput` (`usage`)."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"--otlp {address!r} is no http or https address", code=Code.USAGE)
    return address if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{TRACES_PATH}"


def _batches(found: Reading, name: str) -> AsyncIterator[list[Span]]:
    run = found.find_run(name).run
    return stored_batches(found.log, partition_of(run_stream(run), found.log.partitions), run, BATCH_SPANS)


async def _print(settings: Settings, name: str) -> None:
    async with reading(settings) as found:
        async for batch in _batches(found, name):
            say.out_json(otlp_json(batch))


async def _send(settings: Settings, name: str, endpoint: str | None) -> tuple[int, int]:
    """How many spans arrived, and how many did not."""
    try:
        from dagbok.agents.tracing.otlp import OtlpExporter
    except ModuleNotFoundError as error:
        raise not_installed(error) from error

    exporter = OtlpExporter(endpoint)
    try:
        async with reading(settings) as found:
            arrived = lost = 0
            async for batch in _batches(found, name):
                if await asyncio.to_thread(exporter.export, batch):
                    arrived += len(batch)
                else:
                    lost += len(batch)
            return arrived, lost
    finally:
        exporter.stop()
