"""Answers found in the log: of a command that nobody answered, and again for those whose answer may be lost.

A reply is derived from a confirmed commit and may be lost: its owner was in doubt about that commit, or died before it
was sent. The commit is there all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from dagbok.agents.queue import Queue
from dagbok.agents.scheduler.answers import answer_to
from dagbok.agents.workers.outbox import Outbox
from dagbok.events.body import decode_body
from dagbok.events.commit import Seal, split_value
from dagbok.events.envelope import REPLY_TO, Answer, Command, Reply
from dagbok.events.log.port import COMMANDS, EVENTS, Log, StoredRecord
from dagbok.events.places import events_at
from dagbok.events.run.events import CommandRepeated, Event

LATE_S: Final = 0.5
"""A client's command without an answer is looked for in the log from then on."""
LOOK_S: Final = 5.0
READ_RECORDS: Final = 500
AGAIN: Final = 1_024
"""So many commits are answered once more after a fold: those of the batch in doubt, and of what its owner had on its
way."""


def answer_from(log: Log, offset: int, seal: Seal, stored_body: bytes) -> Answer:
    """The answer that the commit at `offset` gives to its command (blocking); a repeat gets that of the first commit,
    with the same reason and advice."""
    events: Sequence[Event] = decode_body(stored_body, seal.codec, seal.raw_size)
    if isinstance(repeated := events[0], CommandRepeated):
        offset = repeated.offset
        events = events_at(log, seal.partition, offset)
    return answer_to(seal.command_id, (seal.partition, offset), events)


async def ask(log: Log, partition: int, outbox: Outbox, command: Command) -> Answer:
    """Send a client's command; its answer, whether it comes as a reply or has to be found.

    A reply to a repeat lacks what the log has: reason and advice of a refusal are read there.
    """
    since = (await log.bounds(EVENTS, partition)).end
    asked = asyncio.ensure_future(outbox.ask(command))
    finding: asyncio.Task[Answer] | None = None
    try:
        if not (await asyncio.wait((asked,), timeout=LATE_S))[0]:
            finding = asyncio.create_task(find(log, partition, since, command))
            done, _ = await asyncio.wait((asked, finding), return_when=asyncio.FIRST_COMPLETED)
            if finding in done:
                outbox.answered(finding.result())
        answer = await asked
    finally:
        asked.cancel()
        if finding is not None:
            finding.cancel()
            await asyncio.gather(finding, return_exceptions=True)
    if answer.accepted or answer.reason:
        return answer
    return await asyncio.to_thread(lambda: answer_to(answer.id, answer.at, events_at(log, *answer.at)))


async def find(log: Log, partition: int, since: int, command: Command) -> Answer:
    """Follow the log from the offset `since` of `events` until a commit answers the command. Every record of a log that
    refuses misplaced appends counts, so the seals alone tell."""
    offset = since
    while True:
        records = await log.read(EVENTS, partition, offset, READ_RECORDS)
        for record in records:
            parts = split_value(record.value)
            if parts is not None and (parts[0].command_id, parts[0].tenant) == (command.id, command.tenant):
                return answer_from(log, record.offset, *parts)
        if records:
            offset = records[-1].offset + 1
        else:
            await log.wait(EVENTS, partition, offset, LOOK_S)


async def answer_again(log: Log, partition: int, queue: Queue) -> None:
    """Send the answers of the last commits once more. Whoever has had his does not mind."""
    end = (await log.bounds(EVENTS, partition)).end
    records = await log.read(EVENTS, partition, max(0, end - AGAIN), AGAIN)
    sealed = [(record.offset, *parts) for record in records if (parts := split_value(record.value)) is not None]
    if not sealed:
        return
    addresses = await _addresses(log, partition, sealed[0][1].command_offset, sealed[-1][1].command_offset)
    for offset, seal, stored_body in sealed:
        address = addresses.get(seal.command_offset)
        if address is not None:
            reply: Reply = answer_from(log, offset, seal, stored_body)
            queue.reply(address, (reply,))
            await asyncio.sleep(0)


async def _addresses(log: Log, partition: int, first: int, last: int) -> dict[int, str]:
    """Where the answers to these commands go, as far as they are kept."""
    found: dict[int, str] = {}
    while first <= last:
        records: Sequence[StoredRecord] = await log.read(COMMANDS, partition, first, READ_RECORDS)
        if not records:
            break
        for record in records:
            if REPLY_TO in record.headers:
                found[record.offset] = record.headers[REPLY_TO]
        first = records[-1].offset + 1
    return found
