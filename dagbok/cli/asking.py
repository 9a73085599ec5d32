"""A command of a client, sent from the command line: to the owner of a folder, or to the schedulers on Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from dagbok.agents.hosting.control import decide_once
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.workers.definitions import Registry
from dagbok.cli import say
from dagbok.cli.advised import advised
from dagbok.cli.cluster import with_kafka
from dagbok.cli.places import artifacts_place
from dagbok.events.envelope import Answer, Command
from dagbok.settings import Settings

T = TypeVar("T")

SILENT_S: Final = 5.0


async def decide(settings: Settings, envelope: Command) -> Answer:
    """The answer to it. On Kafka it is waited for as long as it takes, and said after a while that nobody answers: the
    command is in the log then, and is decided as soon as somebody decides."""
    if settings.kafka is None:
        return await decide_once(DataFolder(settings.data), envelope)
    opens = with_kafka("dagbok.agents.kafka.process").KafkaProcess.open
    process = await opens(settings.kafka, artifacts_place(settings), Registry(), session_s=settings.session_s)
    try:
        answer: Answer = await with_a_word(process.ask(envelope), settings)
        return answer
    finally:
        await process.close()


async def with_a_word(waiting: Awaitable[T], settings: Settings) -> T:
    """What is waited for; a person is told when no scheduler answers for a while."""
    asked = asyncio.ensure_future(waiting)
    try:
        if not (await asyncio.wait((asked,), timeout=SILENT_S))[0]:
            start, look = advised(settings, "scheduler"), advised(settings, "doctor")
            say.note(f"no scheduler has answered yet: waiting (is one running? {start}; see {look})")
        return await asked
    finally:
        asked.cancel()
