"""Records that others have put into the topics are read, whatever they are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from aiokafka import AIOKafkaProducer

from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.port import COMMANDS
from tests.contract.reading import read_all, records, values_of
from tests.servers.kafka_session import session_kafka
from tests.servers.kafka_unreadable import send_unreadable


@pytest.mark.parametrize(
    ("key", "value", "headers", "found"),
    [
        (None, b"no key", [], ("", b"no key", {})),
        (b"deleted", None, [], ("deleted", b"", {})),
        (b"\xff\xfe", b"key no text", [], ("\ufffd\ufffd", b"key no text", {})),
        (
            b"k",
            b"header no text",
            [("name", b"\xff"), ("none", None)],
            ("k", b"header no text", {"name": "\ufffd", "none": ""}),
        ),
    ],
    ids=["no key", "no value", "key no text", "header no text"],
)
async def test_a_foreign_record_is_read_and_so_is_what_stands_behind_it(
    log: KafkaLog,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    found: tuple[str, bytes, dict[str, str]],
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=session_kafka().bootstrap) as foreign:
        await foreign.send_and_wait(log.settings.prefix + COMMANDS, value, key, partition=0, headers=headers)
    await log.append(COMMANDS, 0, records(b"ours"))

    first, second = await read_all(log, COMMANDS, 0)
    assert (first.key, first.value, dict(first.headers)) == found
    assert values_of([second]) == [b"ours"]


async def test_a_record_whose_header_has_no_name_in_text_spoils_the_rest_of_its_batch_and_holds_nobody_up(
    log: KafkaLog,
) -> None:
    first = await log.append(COMMANDS, 0, records(b"ours"))
    await send_unreadable(session_kafka().bootstrap, log.settings.prefix + COMMANDS, 0)
    await log.append(COMMANDS, 0, records(b"ours too"))

    found = await read_all(log, COMMANDS, 0)

    assert [record.offset for record in found] == list(range(first, first + 5))
    assert values_of(found) == [b"ours", b"before", b"", b"", b"ours too"]
    assert [record.append_ms for record in found] == sorted(record.append_ms for record in found)
    assert log.value_at(COMMANDS, 0, first + 2) == b""
    assert log.value_at(COMMANDS, 0, first + 4) == b"ours too"
