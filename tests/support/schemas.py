"""The exported schemas, as a program in another language would use them: in a validator that knows nothing of
dagbok."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from dagbok.agents.scheduler.inbox import Unreadable, read_data, read_envelope
from dagbok.events.body import stored_events
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.log.port import StoredRecord
from dagbok.events.rule import GENESIS, follow
from dagbok.events.schema import commands_schema, events_schema
from tests.support.logbuilder import START_MS, LogBuilder


@cache
def commands() -> Draft202012Validator:
    """Of record values in `commands`."""
    return Draft202012Validator(commands_schema())


@cache
def events() -> Draft202012Validator:
    """Of events in the bodies of commits."""
    return Draft202012Validator(events_schema())


def recorded_events(values: Iterable[bytes]) -> Iterator[Any]:
    """The JSON of every event that counts among the record values of a partition of `events`."""
    position = GENESIS
    for offset, value in enumerate(values):
        position, commit = follow(position, 0, offset, value)
        if commit is not None:
            for event in stored_events(commit.stored_body, commit.seal.codec, commit.seal.raw_size):
                yield {"type": event.type, "version": event.version, "data": json.loads(bytes(event.data))}


def fitting_commands(history: LogBuilder) -> list[bytes]:
    """The commands of a history that fit the schema."""
    return [record.value for record in history.commands if _fits(record.value)]


def readable_commands(history: LogBuilder) -> list[bytes]:
    """The commands of a history that dagbok itself can read."""
    return [record.value for record in history.commands if is_readable(record.value)]


def is_readable(value: bytes) -> bool:
    """Whether a scheduler decides a command, rather than to say that it is none."""
    record = StoredRecord(0, START_MS, "", value)
    try:
        read_data(read_envelope(record), record, partition=0, partitions=1)
    except Unreadable:
        return False
    except Refused as refused:
        return refused.code in (Code.TOO_OLD, Code.CLOCK_AHEAD)
    return True


def _fits(value: bytes) -> bool:
    try:
        return bool(commands().is_valid(json.loads(value)))
    except ValueError:
        return False
