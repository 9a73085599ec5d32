"""The contract of a log, writing: what `append` promises, alone and among many."""

from __future__ import annotations

import asyncio

import pytest

from dagbok.events.errors import EndMoved
from dagbok.events.log.port import COMMANDS, EVENTS, Log, Record, Topic
from tests.contract.adapters import ManualClock
from tests.contract.reading import read_all, records, values_of


async def test_a_new_log_is_empty(log: Log) -> None:
    for partition in range(log.partitions):
        bounds = await log.bounds(EVENTS, partition)
        assert bounds.start == bounds.end
        assert not await log.read(EVENTS, partition, bounds.end, 10)


async def test_an_append_returns_the_offset_of_its_first_record_and_the_others_follow(log: Log) -> None:
    first = await log.append(EVENTS, 0, records(b"a", b"b", b"c"))
    second = await log.append(EVENTS, 0, records(b"d"))

    assert [(record.offset, record.value) for record in await read_all(log, EVENTS, 0)] == [
        (first, b"a"),
        (first + 1, b"b"),
        (first + 2, b"c"),
        (second, b"d"),
    ]
    assert (await log.bounds(EVENTS, 0)).end == second + 1


async def test_topics_and_partitions_are_apart(log: Log) -> None:
    topics: tuple[Topic, ...] = (COMMANDS, EVENTS)
    places = [(topic, partition) for topic in topics for partition in range(log.partitions)]
    for topic, partition in places:
        await log.append(topic, partition, records(f"{topic} {partition}".encode()))

    for topic, partition in places:
        assert values_of(await read_all(log, topic, partition)) == [f"{topic} {partition}".encode()]


@pytest.mark.parametrize(
    "value",
    [b"", b"\x00", bytes(range(256)), b'{"a":1}\n{"b":2}', b"\xff\xfe not text", bytes(1024 * 1024)],
    ids=["empty", "zero", "every-byte", "lines", "not-text", "mebibyte"],
)
async def test_a_value_is_bytes_and_comes_back_as_it_was(log: Log, value: bytes) -> None:
    offset = await log.append(EVENTS, 0, records(b"before", value, b"after"))

    assert values_of(await read_all(log, EVENTS, 0)) == [b"before", value, b"after"]
    assert log.value_at(EVENTS, 0, offset + 1) == value


@pytest.mark.parametrize("key", ["run:01", "", "catalog:größe ✓ 𝄞", "a\x00b", "x" * 1000])
async def test_a_key_is_any_text(log: Log, key: str) -> None:
    await log.append(EVENTS, 0, records(b"value", key=key))

    (found,) = await log.read(EVENTS, 0, 0, 10)
    assert found.key == key


async def test_headers_come_back_as_they_were(log: Log) -> None:
    headers = {"writer": "host-1", "trace": '"quoted" \\ größe', "": "empty name", "empty": ""}
    await log.append(COMMANDS, 0, [Record("run:a", b"1", headers), Record("run:a", b"2")])

    with_headers, without = await log.read(COMMANDS, 0, 0, 10)
    assert dict(with_headers.headers) == headers
    assert dict(without.headers) == {}


async def test_an_append_of_nothing_is_a_mistake_of_the_caller(log: Log) -> None:
    with pytest.raises(ValueError, match="at least one record"):
        await log.append(EVENTS, 0, [])


async def test_a_key_that_is_not_unicode_text_harms_only_its_own_append(log: Log) -> None:
    good, bad = await asyncio.gather(
        log.append(EVENTS, 0, records(b"good")),
        log.append(EVENTS, 0, records(b"bad", key="\ud800")),
        return_exceptions=True,
    )
    assert isinstance(good, int)
    assert isinstance(bad, ValueError)
    assert values_of(await read_all(log, EVENTS, 0)) == [b"good"]


async def test_a_partition_that_is_not_there_is_a_mistake_of_the_caller(log: Log) -> None:
    for partition in (-1, log.partitions):
        with pytest.raises(ValueError, match="partition"):
            await log.append(EVENTS, partition, records(b"x"))
        with pytest.raises(ValueError, match="partition"):
            await log.read(EVENTS, partition, 0, 1)


async def test_fifty_appenders_at_once_each_find_their_records_together_and_in_their_own_order(log: Log) -> None:
    partition = log.partitions - 1
    landed: dict[int, bytes] = {}

    async def appender(name: int) -> list[int]:
        offsets = []
        for turn in range(6):
            values = [f"{name}/{turn}/{part}".encode() for part in range(1 + turn % 3)]
            offset = await log.append(EVENTS, partition, records(*values))
            landed.update(enumerate(values, offset))
            offsets.append(offset)
        return offsets

    everybody = await asyncio.gather(*(appender(name) for name in range(50)))

    assert all(offsets == sorted(offsets) for offsets in everybody)
    assert {record.offset: record.value for record in await read_all(log, EVENTS, partition)} == landed
    assert len(landed) == 50 * 12


async def test_a_reader_never_sees_a_record_appear_before_one_that_it_has_read(log: Log) -> None:
    async def appender(name: int) -> None:
        for turn in range(10):
            await log.append(EVENTS, 0, records(f"{name}/{turn}/0".encode(), f"{name}/{turn}/1".encode()))

    async def reader() -> list[tuple[int, bytes]]:
        seen: list[tuple[int, bytes]] = []
        while len(seen) < 400:
            start = seen[-1][0] + 1 if seen else 0
            assert await log.wait(EVENTS, 0, start, timeout_s=10)
            seen += [(record.offset, record.value) for record in await log.read(EVENTS, 0, start, 7)]
        return seen

    seen, *_ = await asyncio.gather(reader(), *(appender(name) for name in range(20)))

    assert seen == [(record.offset, record.value) for record in await read_all(log, EVENTS, 0)]


async def test_append_times_never_run_backwards(log: Log, clock: ManualClock) -> None:
    for step_ms in (0, 10, -5_000, 1, 60_000, -120_000):
        clock.now_ms += step_ms
        await log.append(EVENTS, 0, records(b"a", b"b"))

    times = [record.append_ms for record in await read_all(log, EVENTS, 0)]
    assert times == sorted(times)
    assert len(times) == 12


async def test_the_append_time_is_the_clock_s_unless_that_runs_backwards(clocked_log: Log, clock: ManualClock) -> None:
    start_ms = clock.now_ms
    for now_ms in (start_ms, start_ms + 10, start_ms - 5_000, start_ms + 11):
        clock.now_ms = now_ms
        await clocked_log.append(EVENTS, 0, records(b"x"))

    times = [record.append_ms - start_ms for record in await read_all(clocked_log, EVENTS, 0)]
    assert times == [0, 10, 10, 11]


async def test_an_append_at_the_expected_end_is_written(log: Log) -> None:
    end = (await log.bounds(EVENTS, 0)).end
    assert await log.append(EVENTS, 0, records(b"a"), expect=end) == end
    assert await log.append(EVENTS, 0, records(b"b"), expect=end + 1) == end + 1


async def test_an_append_that_expected_another_end_is_refused_with_the_end_and_writes_nothing(
    refusing_log: Log,
) -> None:
    end = await refusing_log.append(EVENTS, 0, records(b"a", b"b")) + 2

    for expected in (end - 1, end + 1):
        with pytest.raises(EndMoved) as refusal:
            await refusing_log.append(EVENTS, 0, records(b"c", b"d"), expect=expected)
        assert (refusal.value.expected, refusal.value.end) == (expected, end)
    assert values_of(await read_all(refusing_log, EVENTS, 0)) == [b"a", b"b"]


async def test_of_many_that_expect_the_same_end_exactly_one_is_written(refusing_log: Log) -> None:
    end = (await refusing_log.bounds(EVENTS, 0)).end

    outcomes = await asyncio.gather(
        *(refusing_log.append(EVENTS, 0, records(b"%d" % name), expect=end) for name in range(20)),
        return_exceptions=True,
    )

    winners = [name for name, outcome in enumerate(outcomes) if outcome == end]
    assert len(winners) == 1
    assert all(isinstance(outcome, EndMoved) for outcome in outcomes if outcome != end)
    assert values_of(await read_all(refusing_log, EVENTS, 0)) == [b"%d" % winners[0]]


async def test_a_refused_append_harms_nobody_who_waits_beside_it(refusing_log: Log) -> None:
    outcomes = await asyncio.gather(
        refusing_log.append(EVENTS, 0, records(b"a", b"b")),
        refusing_log.append(EVENTS, 0, records(b"refused"), expect=777),
        refusing_log.append(COMMANDS, 0, records(b"command")),
        refusing_log.append(EVENTS, 0, records(b"c")),
        return_exceptions=True,
    )

    assert [isinstance(outcome, EndMoved) for outcome in outcomes] == [False, True, False, False]
    assert sorted(values_of(await read_all(refusing_log, EVENTS, 0))) == [b"a", b"b", b"c"]
    assert values_of(await read_all(refusing_log, COMMANDS, 0)) == [b"command"]


async def test_a_log_that_cannot_refuse_reports_where_the_records_landed(unrefusing_log: Log) -> None:
    end = await unrefusing_log.append(EVENTS, 0, records(b"a")) + 1

    landed = await unrefusing_log.append(EVENTS, 0, records(b"b", b"c"), expect=end + 5)

    assert landed == end
    assert values_of(await read_all(unrefusing_log, EVENTS, 0)) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
async def test_a_cancelled_appender_leaves_all_of_its_records_or_none_and_harms_nobody(log: Log, turns: int) -> None:
    appenders = [asyncio.ensure_future(log.append(EVENTS, 0, records(*[b"%d" % name] * 3))) for name in range(30)]
    for _ in range(turns):  # of the loop: cancelled while queued, and in the middle of the transaction
        await asyncio.sleep(0)
    for name, appender in enumerate(appenders):
        if name % 3 == 0:
            appender.cancel()
    outcomes = await asyncio.gather(*appenders, return_exceptions=True)
    await log.append(EVENTS, 0, records(b"after"))

    found = values_of(await read_all(log, EVENTS, 0))
    for name, outcome in enumerate(outcomes):
        count = found.count(b"%d" % name)
        assert count in (0, 3)
        if isinstance(outcome, int):
            assert count == 3
            assert log.value_at(EVENTS, 0, outcome) == b"%d" % name
    assert sum(isinstance(outcome, int) for outcome in outcomes) >= 20
    assert found[-1] == b"after"
