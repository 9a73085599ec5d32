"""The largest things that dagbok writes fit, and what is larger is refused before anything is there."""

from __future__ import annotations

import os

import pytest

from dagbok.agents.scheduler.inbox import MAX_COMMAND_BYTES, MAX_COMPRESSED_BYTES
from dagbok.agents.scheduler.owner import MAX_BATCH, MAX_BATCH_RAW_BYTES
from dagbok.events.body import MAX_STORED_BYTES
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.log import kafka_sizes as sizes
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_writer import size_of
from dagbok.events.log.port import COMMANDS, EVENTS, Record
from tests.contract.reading import read_all, records, values_of

SEAL_BYTES = 2048


def test_the_sizes_follow_from_what_an_owner_takes_and_writes() -> None:
    assert sizes.MAX_COMMAND_BYTES == MAX_COMMAND_BYTES
    assert sizes.MAX_COMMITS_BYTES == MAX_BATCH_RAW_BYTES + MAX_STORED_BYTES
    assert sizes.SEALS_BYTES >= MAX_BATCH * SEAL_BYTES


async def test_a_full_batch_of_commits_fits_although_it_is_incompressible(log: KafkaLog) -> None:
    small = [os.urandom(MAX_BATCH_RAW_BYTES // (MAX_BATCH - 1) + SEAL_BYTES) for _ in range(MAX_BATCH - 1)]
    largest = os.urandom(MAX_STORED_BYTES + SEAL_BYTES)

    first = await log.append(EVENTS, 0, records(*small, largest))

    assert values_of(await read_all(log, EVENTS, 0, first)) == [*small, largest]
    assert log.value_at(EVENTS, 0, first + len(small)) == largest


async def test_the_largest_command_fits(log: KafkaLog) -> None:
    """As large as one may be before compression, and after it."""
    largest = os.urandom(MAX_COMPRESSED_BYTES).ljust(MAX_COMMAND_BYTES)

    offset = await log.append(COMMANDS, 1, [Record("run:a", largest, {"writer": "w" * 200})])

    (found,) = await log.read(COMMANDS, 1, offset, 10)
    assert found.value == largest


async def test_what_does_not_fit_into_a_batch_is_refused_before_it_is_sent(log: KafkaLog) -> None:
    first = await log.append(COMMANDS, 0, records(b"before"))

    with pytest.raises(InvalidInput, match="above the limit") as refused:
        await log.append(COMMANDS, 0, records(*[bytes(1024 * 1024)] * 26))
    assert refused.value.code == Code.TOO_LARGE
    assert await log.append(COMMANDS, 0, records(b"after")) == first + 1


async def test_what_the_broker_finds_too_large_is_refused_and_the_log_goes_on(log: KafkaLog) -> None:
    first = await log.append(COMMANDS, 0, records(b"before"))

    with pytest.raises(InvalidInput, match="takes no batch of this size") as refused:
        await log.append(COMMANDS, 0, records(os.urandom(sizes.MESSAGE_BYTES)))
    assert refused.value.code == Code.TOO_LARGE
    assert await log.append(COMMANDS, 0, records(b"after")) == first + 1


async def test_the_size_that_is_reckoned_is_never_below_what_aiokafka_needs(log: KafkaLog) -> None:
    """Otherwise a batch would take fewer records than were counted for it."""
    for record in (Record("", b""), Record("größe", bytes(300), {"größe": "ü" * 200, "": ""}), Record("k" * 200, b"v")):
        many = [record] * (sizes.BATCH_BYTES // size_of(record) if size_of(record) > 200 else 20_000)
        await log.append(EVENTS, 1, many)
