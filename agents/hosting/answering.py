"""Answers found in the log: of a command that nobody answered, and again for those whose answer may be lost.

A reply is derived from a confirmed commit and may be lost: its owner was in doubt about that commit, or died before it
was sent. The commit is there all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from dagbok.agents.queue import Queue
from dagbok.agents.scheduler.answers import answer_to
from dagbok.agents.workers.outbox import Outbox
from dagbok.events.body import decode_body
from dagbok.events.codes import Code
from dagbok.events.commit import Seal, split_value, value_hash
from dagbok.events.envelope import REPLY_TO, Answer, Command
from dagbok.events.log.port import COMMANDS, EVENTS, Log, StoredRecord
from dagbok.events.places import events_at
from dagbok.events.rule import Position
from dagbok.events.run.events import CommandRepeated, Event

LATE_S: Final = 0.5
"""A client's command without an answer is looked for in the log from then on."""
LOOK_S: Final = 5.0
READ_RECORDS: Final = 500
AGAIN: Final = 512
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


async def answer_again(
    log: Log, partition: int, head: Position, queue: Queue, lives: Callable[[str], bool]
) -> None:
    """Send the answers of the last commits before `head` once more, to processes that live: `lives` is asked by their
    id. Whoever has had his answer does not mind, but for internal errors, which senders count: those are not told
    twice."""
    last = head.last_command_offset
    addresses = await _addresses(log, partition, last - AGAIN, last, lives)
    for record in await _effective_before(log, partition, head) if addresses else ():
        parts = split_value(record.value)
        if parts is not None and (address := addresses.pop(parts[0].command_offset, None)) is not None:
            answer = await asyncio.to_thread(answer_from, log, record.offset, *parts)
            if answer.code != Code.INTERNAL_ERROR:
                queue.reply(address, (answer,))


async def _effective_before(log: Log, partition: int, head: Position) -> Sequence[StoredRecord]:
    """The last records up to the head that count: each is the one that the next of them names as its `prev`."""
    offset = max(0, head.head_offset + 1 - AGAIN)
    records: list[StoredRecord] = []
    while offset <= head.head_offset and (read := await log.read(EVENTS, partition, offset, READ_RECORDS)):
        records += read
        offset = read[-1].offset + 1
    found: list[StoredRecord] = []
    wanted = head.head_hash
    for record in reversed(records):
        if record.offset <= head.head_offset and value_hash(record.value) == wanted:
            found.append(record)
            parts = split_value(record.value)
            wanted = "" if parts is None else parts[0].prev
    return found[::-1]


async def _addresses(log: Log, partition: int, first: int, last: int, lives: Callable[[str], bool]) -> dict[int, str]:
    """Where the answers to these commands go, as far as they are kept and anybody is there: an address ends in the id
    of its process."""
    found: dict[int, str] = {}
    living: dict[str, bool] = {}
    first = max(0, first)
    while first <= last and (records := await log.read(COMMANDS, partition, first, READ_RECORDS)):
        for record in records:
            first = record.offset + 1
            address = record.headers.get(REPLY_TO)
            if address is None or record.offset > last:
                continue
            process = address.rpartition("/")[2]
            if process not in living:
                living[process] = lives(process)
            if living[process]:
                found[record.offset] = address
    return found
