"""More readers than cursors: everybody finds everything, also beside those who give up in the middle."""

from __future__ import annotations

import asyncio
import random

from dagbok.events.log.kafka import CURSORS, KafkaLog
from dagbok.events.log.port import EVENTS
from tests.contract.reading import read_all, records, values_of

COUNT = 2000


async def filled(log: KafkaLog) -> list[bytes]:
    values = [b"%d" % number for number in range(COUNT)]
    for start in range(0, COUNT, 100):
        await log.append(EVENTS, 0, records(*values[start : start + 100]))
    return values


async def test_more_readers_than_cursors_each_read_on_from_their_own_place(log: KafkaLog) -> None:
    values = await filled(log)
    starts = range(0, COUNT, COUNT // (4 * CURSORS))

    async with asyncio.timeout(60):
        found = await asyncio.gather(*(read_all(log, EVENTS, 0, start, limit=150) for start in starts))

    assert [values_of(page) for page in found] == [values[start:] for start in starts]


async def test_readers_that_are_cancelled_anywhere_harm_nobody(log: KafkaLog) -> None:
    values = await filled(log)
    chance = random.Random(7)

    async def gives_up() -> None:
        for _ in range(15):
            reading = asyncio.ensure_future(log.read(EVENTS, 0, chance.randrange(COUNT), 100))
            for _ in range(chance.randrange(40)):
                await asyncio.sleep(0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async with asyncio.timeout(60):
        reading = asyncio.ensure_future(read_all(log, EVENTS, 0, limit=30))
        await asyncio.gather(*(gives_up() for _ in range(8)))
        found = await reading
        again = await read_all(log, EVENTS, 0, limit=700)

    assert values_of(found) == values
    assert values_of(again) == values


async def test_a_page_is_full_while_there_is_more(log: KafkaLog) -> None:
    """An owner decides as much at once as it may: half pages would be half batches."""
    values = await filled(log)
    pages = [len(await log.read(EVENTS, 0, start, 256)) for start in range(0, COUNT - 256, 256)]
    assert pages == [256] * len(pages)
    assert len(await log.read(EVENTS, 0, COUNT - 10, 256)) == 10
    assert len(values) == COUNT


async def test_many_that_wait_and_give_up_leave_the_partition_readable(log: KafkaLog) -> None:
    first = await log.append(EVENTS, 0, records(b"a"))
    assert not any(await asyncio.gather(*(log.wait(EVENTS, 0, first + 1, timeout_s=0.01) for _ in range(20))))

    waiting = [asyncio.ensure_future(log.wait(EVENTS, 0, first + 1)) for _ in range(20)]
    async with asyncio.timeout(10):
        await log.append(EVENTS, 0, records(b"b"))
        assert all(await asyncio.gather(*waiting))
    pages = await asyncio.gather(*(log.read(EVENTS, 0, first, 10) for _ in range(20)))
    assert [values_of(page) for page in pages] == [[b"a", b"b"]] * 20
