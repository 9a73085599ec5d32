"""The contract of a log, its life: closing, opening again, and several instances that are open at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dagbok.events.errors import EndMoved, LogError
from dagbok.events.log.port import COMMANDS, EVENTS, Bounds, Log, Record
from tests.contract.adapters import Adapter, ManualClock
from tests.contract.reading import read_all, records, values_of


async def test_close_can_be_repeated(log: Log) -> None:
    await log.append(EVENTS, 0, records(b"a"))
    await asyncio.gather(log.close(), log.close())
    await log.close()


async def test_a_closed_log_says_so(log: Log) -> None:
    await log.append(EVENTS, 0, records(b"a"))
    await log.close()

    for call in (
        log.append(EVENTS, 0, records(b"b")),
        log.read(EVENTS, 0, 0, 1),
        log.bounds(EVENTS, 0),
        log.wait(EVENTS, 0, 0),
        log.delete_before(EVENTS, 0, 0),
    ):
        with pytest.raises(LogError, match="closed"):
            await call
    with pytest.raises(LogError, match="closed"):
        log.value_at(EVENTS, 0, 0)


async def test_who_waits_learns_that_the_log_was_closed(log: Log) -> None:
    waiting = asyncio.ensure_future(log.wait(EVENTS, 0, 0))
    await asyncio.sleep(0)
    await log.close()

    async with asyncio.timeout(10):
        with pytest.raises(LogError, match="closed"):
            await waiting


async def test_what_was_queued_is_written_before_the_log_closes(
    durable: Adapter, tmp_path: Path, clock: ManualClock
) -> None:
    log = await durable.open(tmp_path, clock)
    large = 1500  # records: together more than one transaction takes
    appends = [asyncio.ensure_future(log.append(EVENTS, 0, records(*[b"%d" % name] * large))) for name in range(5)]
    await asyncio.sleep(0)
    await log.close()
    offsets = await asyncio.gather(*appends)

    again = await durable.open(tmp_path, clock)
    found = await read_all(again, EVENTS, 0)
    assert len(found) == 5 * large
    for name, offset in enumerate(offsets):
        assert {record.value for record in found if offset <= record.offset < offset + large} == {b"%d" % name}
    await again.close()


async def test_a_log_that_is_opened_again_has_everything(durable: Adapter, tmp_path: Path, clock: ManualClock) -> None:
    log = await durable.open(tmp_path, clock)
    await log.append(COMMANDS, 0, [Record("run:a", b"\x00\xff", {"writer": "one"}), Record("run:b", b"")])
    await log.append(EVENTS, 0, records(b"1", b"2"))
    before = [await read_all(log, topic, 0) for topic in (COMMANDS, EVENTS)]
    await log.close()

    again = await durable.open(tmp_path, clock)
    assert [await read_all(again, topic, 0) for topic in (COMMANDS, EVENTS)] == before
    assert again.value_at(COMMANDS, 0, before[0][0].offset) == b"\x00\xff"
    await again.close()


async def test_offsets_and_time_go_on_when_an_emptied_log_is_opened_again(
    durable: Adapter, tmp_path: Path, clock: ManualClock
) -> None:
    log = await durable.open(tmp_path, clock)
    first = await log.append(EVENTS, 0, records(*[b"x"] * 10))
    (last,) = await log.read(EVENTS, 0, first + 9, 1)
    await log.delete_before(EVENTS, 0, first + 10)
    await log.close()

    clock.now_ms -= 60_000
    again = await durable.open(tmp_path, clock)
    assert await again.bounds(EVENTS, 0) == Bounds(first + 10, first + 10)
    assert await again.append(EVENTS, 0, records(b"y")) >= first + 10
    (record,) = await read_all(again, EVENTS, 0)
    assert record.append_ms >= last.append_ms
    await again.close()


async def test_an_append_of_one_instance_is_seen_by_the_other_and_wakes_it(
    durable: Adapter, tmp_path: Path, clock: ManualClock
) -> None:
    one, other = await durable.open(tmp_path, clock), await durable.open(tmp_path, clock)
    near, far = (asyncio.ensure_future(other.wait(EVENTS, 0, offset)) for offset in (0, 1))
    await asyncio.sleep(0)

    async with asyncio.timeout(10):
        await one.append(EVENTS, 0, records(b"a"))
        assert await near
        assert not far.done()
        await one.append(EVENTS, 0, records(b"b"))
        assert await far
    assert values_of(await other.read(EVENTS, 0, 0, 10)) == [b"a", b"b"]
    await asyncio.gather(one.close(), other.close())


async def test_two_instances_share_one_order_one_end_and_one_time(
    durable: Adapter, tmp_path: Path, clock: ManualClock
) -> None:
    slow = ManualClock(clock.now_ms - 60_000)
    one, other = await durable.open(tmp_path, clock), await durable.open(tmp_path, slow)

    async def appender(log: Log, name: bytes) -> list[int]:
        return [await log.append(EVENTS, 0, records(name, name)) for _ in range(20)]

    await asyncio.gather(appender(one, b"one"), appender(other, b"other"), appender(one, b"third"))

    found = await read_all(one, EVENTS, 0)
    assert found == await read_all(other, EVENTS, 0)
    assert all(found[n].value == found[n + 1].value for n in range(0, 120, 2))
    assert [record.append_ms for record in found] == sorted(record.append_ms for record in found)
    await asyncio.gather(one.close(), other.close())


async def test_the_end_that_another_instance_moved_is_refused(
    durable_refusing: Adapter, tmp_path: Path, clock: ManualClock
) -> None:
    one, other = await durable_refusing.open(tmp_path, clock), await durable_refusing.open(tmp_path, clock)
    end = await one.append(EVENTS, 0, records(b"a")) + 1
    await other.append(EVENTS, 0, records(b"b"), expect=end)

    with pytest.raises(EndMoved) as refusal:
        await one.append(EVENTS, 0, records(b"late"), expect=end)
    assert refusal.value.end == end + 1
    assert values_of(await read_all(one, EVENTS, 0)) == [b"a", b"b"]
    await asyncio.gather(one.close(), other.close())
