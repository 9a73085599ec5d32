"""Dead letters for whoever operates the log: what they are, their bytes, and another try.

Nothing waits behind a command that could not be decoded or handled: its refusal keeps its bytes
(`docs/design/architecture.md`, section 3.2). Nothing that answers a tenant calls these.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from dagbok.events.codes import Code
from dagbok.events.envelope import command_hash, decode_command
from dagbok.events.errors import Refused
from dagbok.events.log.port import COMMANDS, Log, Record
from dagbok.events.places import events_at
from dagbok.events.run.events import CommandRefused
from dagbok.projections.store import Tables
from dagbok.projections.views.dead_letters import DeadLetterRow


def list_dead_letters(tables: Tables, *, limit: int = 50) -> list[DeadLetterRow]:
    """The newest `limit`, the newest first. Blocks, and raises like `Queries`."""
    with tables.reading() as connection:
        session = tables.live(connection, tables.view_of(DeadLetterRow))
        columns = session.columns(DeadLetterRow)
        statement = sa.select(session.tables.table(DeadLetterRow))
        order = (columns["now_ms"].desc(), columns["log_partition"], columns["command_offset"].desc())
        return session.fetch(DeadLetterRow, statement.order_by(*order).limit(max(0, limit)))


def get_dead_letter(tables: Tables, partition: int, command_offset: int) -> DeadLetterRow:
    """That of a place in `commands`. Blocks. Raises `Refused` (`not_found`), and like `Queries`."""
    with tables.reading() as connection:
        session = tables.live(connection, tables.view_of(DeadLetterRow))
        columns = session.columns(DeadLetterRow)
        here = (columns["log_partition"] == partition, columns["command_offset"] == command_offset)
        found = session.fetch(DeadLetterRow, sa.select(session.tables.table(DeadLetterRow)).where(*here))
    if not found:
        raise Refused(
            Code.NOT_FOUND, f"there is no dead letter {partition}:{command_offset}", advice="see dagbok dead-letters ls"
        )
    return found[0]


async def bytes_of(log: Log, letter: DeadLetterRow) -> tuple[bytes, bool]:
    """The bytes of the command, and whether they are all of it: a refusal keeps the first 32 KiB, and `commands` the
    whole until it is cleared. Raises what reading the log raises."""
    place, offset = letter.log_partition, letter.command_offset
    bounds = await log.bounds(COMMANDS, place)
    if bounds.start <= offset < bounds.end:
        records = await log.read(COMMANDS, place, offset, 1)
        if records and records[0].offset == offset and command_hash(records[0].value) == letter.command_hash:
            return records[0].value, True
    kept = _kept(events_at(log, place, letter.log_offset))
    return kept, command_hash(kept) == letter.command_hash


async def redrive(log: Log, letter: DeadLetterRow) -> int:
    """Append the command anew, to the partition where it was; the offset. It is decided as any other: it is refused
    again unless the code that decides it has changed. Raises `Refused` (`too_large`) when it is no longer there as a
    whole, and what appending raises."""
    value, whole = await bytes_of(log, letter)
    if not whole:
        raise Refused(
            Code.TOO_LARGE,
            f"of the command {letter.log_partition}:{letter.command_offset} only the first {len(value)} bytes are left",
            advice="have its sender send it again",
        )
    return await log.append(COMMANDS, letter.log_partition, [Record(_stream_of(value), value)])


def _kept(events: Sequence[object]) -> bytes:
    for event in events:
        if isinstance(event, CommandRefused) and event.raw is not None:
            return event.raw
    return b""


def _stream_of(value: bytes) -> str:
    """The key of the record: a hint, which decides nothing."""
    try:
        return decode_command(value).stream
    except ValueError:  # of which msgspec's errors are
        return ""
