"""Records that others have put into the topics are read, whatever they are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from aiokafka import AIOKafkaProducer

from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.port import COMMANDS
from tests.contract.reading import read_all, records, values_of
from tests.servers.kafka_session import session_kafka


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
