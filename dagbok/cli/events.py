"""`dagbok events`: the journal of a run, and what follows."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from dagbok.cli import say
from dagbok.cli.interrupts import interruptible
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.reading import Reading, reading
from dagbok.cli.text import clean, clock, short
from dagbok.projections.views.journal import JournalRow
from dagbok.settings import Settings

PAGE = 1_000
TOLD = ("kind", "key", "code", "reason", "message", "verdict", "note", "due_ms", "command")


def print_events(name: str, follow: bool, after: int, place: Place | None, output: Output | None) -> int:
    """Print events, and with `follow` the next ones until the run is over."""
    settings, how = settle(place, output)
    asyncio.run(interruptible(_events(settings, name, follow, after, how.json)))
    return 0


async def _events(settings: Settings, name: str, follow: bool, after: int, as_json: bool) -> None:
    async with reading(settings) as found:
        run = found.find_run(name).run
        while True:
            after = _print_page(found, run, after, as_json)
            sys.stdout.flush()
            if not follow or _over(found, run, after):
                return
            await found.more()


def _print_page(found: Reading, run: str, after: int, as_json: bool) -> int:
    while True:
        rows = found.queries.journal(found.tenant, found.project, run, after_seq=after, limit=PAGE)
        for row in rows:
            if as_json:
                say.out_json(_as_json(row))
            else:
                say.out(_as_line(row))
        if not rows:
            return after
        after = rows[-1].seq


def _over(found: Reading, run: str, after: int) -> bool:
    row = found.queries.get_run(found.tenant, found.project, run)
    return row is not None and row.status in ("succeeded", "failed", "cancelled") and after >= row.last_seq


def _as_json(row: JournalRow) -> dict[str, object]:
    return {
        "seq": row.seq,
        "type": row.type,
        "version": row.version,
        "task": row.task,
        "at_ms": row.now_ms,
        "actor": row.actor,
        "command": {"type": row.command_type, "id": row.command_id},
        "log": [row.log_partition, row.log_offset, row.log_event],
        "data": msgspec.Raw(row.data.encode()),
    }


def _as_line(row: JournalRow) -> str:
    data = msgspec.json.decode(row.data)
    told = _told(data) if isinstance(data, dict) else []
    line = f"{row.seq:>6}  {clock(row.now_ms)}  {row.type:<22}  {short(row.task) if row.task else '-':<14}  "
    return (line + "  ".join(told)).rstrip()


def _told(data: dict[str, object]) -> list[str]:
    """The few values of an event that a reader looks for."""
    nested = [value for name in ("failure", "report") if isinstance(value := data.get(name), dict)]
    found: list[str] = []
    for part in (data, *nested):
        for name in TOLD:
            value = part.get(name)
            if isinstance(value, str | int) and value != "":
                found.append(f"{name}={clean(str(value), 80)}")
    tasks = data.get("tasks")
    if isinstance(tasks, list):
        found.append(f"tasks={len(tasks)}")
    return found
