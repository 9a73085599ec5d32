"""The contract of a log, reading: `read`, `bounds`, `wait`, `value_at`, `read_now`, and what `delete_before` leaves."""

from __future__ import annotations

import asyncio

import pytest

from dagbok.events.errors import LogLost
from dagbok.events.log.port import COMMANDS, EVENTS, Bounds, Log, StoredRecord
from tests.contract.adapters import ManualClock
from tests.contract.reading import read_all, records, values_of


async def _filled(log: Log, count: int) -> int:
    """Append `count` records, the n-th with value n, and return the offset of the first."""
    return await log.append(EVENTS, 0, records(*(b"%d" % number for number in range(count))))


async def test_a_read_gives_at_most_its_limit_and_the_next_one_goes_on(log: Log) -> None:
    first = await _filled(log, 25)

    page = await log.read(EVENTS, 0, first + 3, 10)

    assert values_of(page) == [b"%d" % number for number in range(3, 13)]
    for limit in (1, 7, 1000):
        assert values_of(await read_all(log, EVENTS, 0, first, limit)) == [b"%d" % number for number in range(25)]


async def test_a_read_is_empty_exactly_at_or_beyond_the_end(log: Log) -> None:
    first = await _filled(log, 3)

    assert values_of(await log.read(EVENTS, 0, first + 2, 10)) == [b"2"]
    assert not await log.read(EVENTS, 0, first + 3, 10)
    assert not await log.read(EVENTS, 0, first + 1000, 10)


async def test_a_read_of_nothing_is_a_mistake_of_the_caller(log: Log) -> None:
    with pytest.raises(ValueError, match="limit"):
        await log.read(EVENTS, 0, 0, 0)


async def test_a_read_of_large_values_is_complete_page_by_page(log: Log) -> None:
    values = [bytes([number]) * 3_000_000 for number in range(8)]
    for value in values:
        await log.append(EVENTS, 0, records(value))

    assert values_of(await read_all(log, EVENTS, 0)) == values


async def test_wait_returns_at_once_when_the_end_is_beyond_the_offset(log: Log) -> None:
    first = await _filled(log, 2)

    assert await log.wait(EVENTS, 0, first + 1)
    assert await log.wait(EVENTS, 0, first, timeout_s=0)


async def test_wait_gives_up_after_its_timeout(log: Log) -> None:
    first = await _filled(log, 2)

    assert not await log.wait(EVENTS, 0, first + 2, timeout_s=0)
    assert not await log.wait(EVENTS, 0, first + 2, timeout_s=0.03)


async def test_an_append_wakes_those_and_only_those_whose_offset_it_passes(log: Log) -> None:
    first = await _filled(log, 1)
    near = [asyncio.ensure_future(log.wait(EVENTS, 0, first + 1)) for _ in range(3)]
    far = asyncio.ensure_future(log.wait(EVENTS, 0, first + 3))
    elsewhere = asyncio.ensure_future(log.wait(COMMANDS, 0, 0))
    await asyncio.sleep(0)

    await log.append(EVENTS, 0, records(b"a", b"b"))
    async with asyncio.timeout(10):
        assert await asyncio.gather(*near) == [True] * 3
    assert not far.done()
    assert not elsewhere.done()

    await log.append(EVENTS, 0, records(b"c"))
    await log.append(COMMANDS, 0, records(b"d"))
    async with asyncio.timeout(10):
        assert all(await asyncio.gather(far, elsewhere))


async def test_a_cancelled_waiter_harms_nobody(log: Log) -> None:
    cancelled, waiting = (asyncio.ensure_future(log.wait(EVENTS, 0, 0)) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()

    await _filled(log, 1)
    async with asyncio.timeout(10):
        assert await waiting
    assert cancelled.cancelled()


async def test_value_at_answers_from_many_threads_while_the_log_grows(log: Log) -> None:
    first = await _filled(log, 200)

    def look(thread: int) -> list[bytes]:
        return [log.value_at(EVENTS, 0, first + number) for number in range(thread, 200, 8)]

    looking = [asyncio.to_thread(look, thread) for thread in range(8)]
    found, *_ = await asyncio.gather(
        asyncio.gather(*looking), *(log.append(EVENTS, 0, records(b"more")) for _ in range(20))
    )

    assert found == [[b"%d" % number for number in range(thread, 200, 8)] for thread in range(8)]


async def test_value_at_says_that_a_record_is_not_there(log: Log) -> None:
    first = await _filled(log, 1)
    for offset in (first + 1, first - 1):
        with pytest.raises(LogLost):
            log.value_at(EVENTS, 0, offset)


async def test_delete_before_removes_what_lies_below_and_moves_no_offset(log: Log) -> None:
    first = await _filled(log, 10)
    await log.append(COMMANDS, 0, records(b"other topic"))

    await log.delete_before(EVENTS, 0, first + 4)

    bounds = await log.bounds(EVENTS, 0)
    assert (bounds.start, bounds.end) == (first + 4, first + 10)
    kept = await read_all(log, EVENTS, 0, start=first)
    assert [(record.offset, record.value) for record in kept] == [(first + n, b"%d" % n) for n in range(4, 10)]
    with pytest.raises(LogLost):
        log.value_at(EVENTS, 0, first + 3)
    assert log.value_at(EVENTS, 0, first + 4) == b"4"
    assert values_of(await read_all(log, COMMANDS, 0)) == [b"other topic"]


async def test_deleting_again_or_less_changes_nothing(log: Log) -> None:
    first = await _filled(log, 10)
    for offset in (first + 4, first + 4, first + 1, first - 1):
        await log.delete_before(EVENTS, 0, offset)

    assert (await log.bounds(EVENTS, 0)).start == first + 4


async def test_deleting_beyond_the_end_removes_everything_and_leaves_the_end_where_it_is(log: Log) -> None:
    first = await _filled(log, 3)
    await log.delete_before(EVENTS, 0, first + 100)

    bounds = await log.bounds(EVENTS, 0)
    assert (bounds.start, bounds.end) == (first + 3, first + 3)
    offset = await log.append(EVENTS, 0, records(b"next"))
    assert values_of(await log.read(EVENTS, 0, offset, 10)) == [b"next"]


async def test_an_offset_is_never_given_again_when_everything_is_deleted(log: Log) -> None:
    first = await _filled(log, 10)
    await log.delete_before(EVENTS, 0, first + 10)

    bounds = await log.bounds(EVENTS, 0)
    assert (bounds.start, bounds.end) == (first + 10, first + 10)
    assert await log.append(EVENTS, 0, records(b"next")) >= first + 10


async def test_the_append_time_does_not_run_backwards_when_everything_is_deleted(log: Log, clock: ManualClock) -> None:
    first = await _filled(log, 2)
    (before, _) = await log.read(EVENTS, 0, first, 2)
    await log.delete_before(EVENTS, 0, first + 2)

    clock.now_ms -= 60_000
    await log.append(EVENTS, 0, records(b"after"))

    (after,) = await read_all(log, EVENTS, 0)
    assert after.append_ms >= before.append_ms


async def test_many_records_are_deleted_while_others_are_appended_and_read(log: Log) -> None:
    first = await _filled(log, 3000)

    async def append_on() -> None:
        for number in range(20):
            await log.append(EVENTS, 0, records(b"new %d" % number))
            assert await log.read(EVENTS, 0, first + 2990, 1)

    await asyncio.gather(log.delete_before(EVENTS, 0, first + 2990), append_on())

    found = await read_all(log, EVENTS, 0, start=first)
    assert found[0].offset == first + 2990
    assert values_of(found) == [b"%d" % n for n in range(2990, 3000)] + [b"new %d" % n for n in range(20)]


@pytest.mark.parametrize("offset", [2**62, 2**63 - 1, 2**64, 10**30])
async def test_beyond_every_offset_that_can_be_there_is_the_end(log: Log, offset: int) -> None:
    first = await _filled(log, 3)

    assert not await log.read(EVENTS, 0, offset, 10)
    assert values_of(await log.read(EVENTS, 0, first, offset)) == [b"0", b"1", b"2"]
    assert not await log.wait(EVENTS, 0, offset, timeout_s=0)
    with pytest.raises(LogLost):
        log.value_at(EVENTS, 0, offset)
    with pytest.raises(LogLost):
        log.value_at(EVENTS, 0, -offset)


async def test_removing_before_an_offset_that_cannot_be_there_removes_all(log: Log) -> None:
    first = await _filled(log, 3)

    await log.delete_before(EVENTS, 0, 10**30)

    assert await log.bounds(EVENTS, 0) == Bounds(first + 3, first + 3)


async def test_a_blocking_read_gives_what_a_read_gives(log: Log) -> None:
    first = await _filled(log, 25)
    await log.delete_before(EVENTS, 0, first + 2)

    for start, limit in ((first, 3), (first + 3, 10), (first + 20, 100), (first + 25, 5), (first + 1000, 5)):
        assert list(log.read_now(EVENTS, 0, start, limit)) == list(await log.read(EVENTS, 0, start, limit))
    with pytest.raises(ValueError, match="limit"):
        log.read_now(EVENTS, 0, first, 0)


async def test_a_blocking_read_sees_what_was_appended_just_now(log: Log) -> None:
    first = await _filled(log, 1)
    for number in range(1, 20):
        assert not log.read_now(EVENTS, 0, first + number, 10)
        await log.append(EVENTS, 0, records(b"%d" % number))
        assert values_of(log.read_now(EVENTS, 0, first + number, 10)) == [b"%d" % number]


async def test_blocking_reads_of_many_threads_go_on_while_the_log_grows(log: Log) -> None:
    first = await _filled(log, 200)

    def look() -> list[bytes]:
        found: list[StoredRecord] = []
        while page := log.read_now(EVENTS, 0, first + len(found), 7):
            found.extend(page)
        return values_of(found)

    looking = asyncio.gather(*[asyncio.to_thread(look) for _ in range(8)])
    await asyncio.gather(*[log.append(EVENTS, 0, records(b"more")) for _ in range(20)])
    looked = await looking

    for values in looked:
        assert values[:200] == [b"%d" % number for number in range(200)]
        assert set(values[200:]) <= {b"more"}
