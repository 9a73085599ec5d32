"""`dagbok dead-letters`: commands that nobody could make sense of, and another try for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from dagbok.agents.hosting.presence import look_at_owner
from dagbok.cli import say
from dagbok.cli.advised import advised
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import Reading, reading
from dagbok.cli.text import clean, columns, moment, plural
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, Refused
from dagbok.projections.dead_letters import bytes_of, get_dead_letter, list_dead_letters, redrive
from dagbok.projections.views.dead_letters import DeadLetterRow
from dagbok.settings import Settings

SHOWN_BYTES: Final = 2_000


def list_letters(limit: int, place: Place | None, output: Output | None) -> int:
    """Print the newest."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    found = asyncio.run(_list(settings, limit))
    if how.json:
        say.out_json([_told(letter) for letter in found])
        return 0
    if not found:
        say.note("no dead letters: every command could be decoded and handled")
        return 0
    head = ["COMMAND", "WHEN", "CODE", "TYPE", "TENANT", "WHY"]
    lines = [
        [
            name_of(letter),
            moment(letter.now_ms),
            letter.code,
            clean(letter.command_type, 20) or "-",
            clean(letter.tenant, 20) or "-",
            clean(letter.reason),
        ]
        for letter in found
    ]
    for line in columns([head, *lines]):
        say.out(line)
    return 0


def show_letter(name: str, place: Place | None, output: Output | None) -> int:
    """Print one, with its bytes."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    letter, data, whole = asyncio.run(_show(settings, parse(name, settings)))
    if how.json:
        say.out_json({**_told(letter), "raw": data, "whole": whole})
        return 0
    for field, value in _told(letter).items():
        say.out(f"{field.ljust(14)}  {clean(str(value), 2_000)}")
    told = "" if whole else ", all that is left of it"
    say.out(f"\n{plural(len(data), 'byte')}{told}:")
    say.out(clean(data[:SHOWN_BYTES].decode("utf-8", "backslashreplace"), SHOWN_BYTES))
    return 0


def redrive_letter(name: str, place: Place | None, output: Output | None) -> int:
    """Append one anew."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    where, decided_by = asyncio.run(_redrive(settings, parse(name, settings)))
    if how.json:
        say.out_json({"command": where})
    else:
        say.out(f"appended as {where}; {decided_by}")
    return 0


def parse(name: str, settings: Settings) -> tuple[int, int]:
    """Partition and offset of a command, as `ls` prints them. Raises `InvalidInput`."""
    partition, _, offset = name.partition(":")
    if not (name.isascii() and partition.isdecimal() and offset.isdecimal() and len(name) < 40):
        raise InvalidInput(
            f"{name!r} is no PARTITION:OFFSET of a command", code=Code.USAGE, advice=_see(settings)
        )
    return int(partition), int(offset)


def name_of(letter: DeadLetterRow) -> str:
    """Where the command stands in `commands`."""
    return f"{letter.log_partition}:{letter.command_offset}"


def _see(settings: Settings) -> str:
    return f"see {advised(settings, 'dead-letters', 'ls')}"


def _told(letter: DeadLetterRow) -> dict[str, object]:
    return {"command": name_of(letter), **msgspec.structs.asdict(letter)}


async def _list(settings: Settings, limit: int) -> Sequence[DeadLetterRow]:
    async with reading(settings) as found:
        return await asyncio.to_thread(list_dead_letters, found.tables, limit=limit)


async def _letter(found: Reading, place: tuple[int, int]) -> DeadLetterRow:
    try:
        return await asyncio.to_thread(get_dead_letter, found.tables, *place)
    except Refused as error:
        raise Refused(error.code, error.message, advice=_see(found.settings)) from error


async def _show(settings: Settings, place: tuple[int, int]) -> tuple[DeadLetterRow, bytes, bool]:
    async with reading(settings) as found:
        letter = await _letter(found, place)
        return letter, *await bytes_of(found.log, letter)


async def _redrive(settings: Settings, place: tuple[int, int]) -> tuple[str, str]:
    async with reading(settings) as found:
        letter = await _letter(found, place)
        offset = await redrive(found.log, letter)
        if found.on_kafka:
            return f"{letter.log_partition}:{offset}", ""
        owner = look_at_owner(found.folder)
        waits = "nobody decides now: it is decided by the next process that owns the folder"
        return f"{letter.log_partition}:{offset}", waits if owner.state == "none" else str(owner)
