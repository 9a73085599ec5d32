"""Who serves a pool with others: what it was handed and left behind goes to them, what it settled does not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec
import pytest

from dagbok.agents.kafka.lane import LaneIntake
from dagbok.agents.kafka.names import lane_group, lane_topic, replies_topic
from dagbok.agents.kafka.offsets import Offsets
from dagbok.agents.kafka.pool import LaneReader
from dagbok.agents.kafka.queue import KafkaQueue
from dagbok.agents.kafka.replies import ReplyRecord
from dagbok.agents.kafka.routes import Letter
from dagbok.agents.queue import attempt_of, lane_address
from dagbok.events.envelope import CancelHint
from dagbok.events.log.kafka_settings import KafkaSettings
from tests.contract.queue_sites import LANE, TIMEOUT_S, Places, collect, dispatch, large, serve, until
from tests.kafka.queue_site import make_topics, new_prefix, queue_of
from tests.servers.kafka_session import session_kafka
from tests.servers.kafka_unreadable import send_unreadable

NUMBERS = list(range(1, 7))


async def take_all(owner: KafkaQueue, first: KafkaQueue) -> None:
    """What `owner` puts is taken by `first`."""
    serve(first)
    owner.put(LANE, [dispatch(number) for number in NUMBERS])
    assert await collect(first, len(NUMBERS)) == NUMBERS


def settle(queue: KafkaQueue, numbers: Sequence[int]) -> None:
    """These are done with."""
    for number in numbers:
        queue.settled(LANE, attempt_of(dispatch(number)))


async def test_what_a_process_took_and_did_not_settle_goes_to_another() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "owner") as owner:
        async with queue_of(prefix, "first") as first:
            await take_all(owner, first)
            settle(first, NUMBERS[:4])
        async with queue_of(prefix, "second") as second:
            serve(second)
            assert await collect(second, 2) == NUMBERS[4:]


@pytest.mark.parametrize("before", [0, 2], ids=["nothing was settled before", "two were settled before"])
async def test_also_when_all_that_was_put_after_it_is_settled(before: int) -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "owner") as owner:
        async with queue_of(prefix, "first") as first:
            await take_all(owner, first)
            settle(first, NUMBERS[:before])
            await acknowledged(prefix, before)
            settle(first, NUMBERS[before + 1 :])
        async with queue_of(prefix, "second") as second:
            serve(second)
            assert NUMBERS[before] in await collect(second, 1)


async def acknowledged(prefix: str, count: int) -> None:
    """Wait until the group of the lane is done with so many, of all partitions."""
    offsets = Offsets(KafkaSettings(bootstrap_servers=session_kafka().bootstrap, prefix=prefix))
    async with asyncio.timeout(TIMEOUT_S):
        while sum((await offsets.done(lane_group(prefix, LANE))).values()) < count:  # noqa: ASYNC110 – it can only be asked
            await asyncio.sleep(0.05)
    await offsets.close()


async def test_a_process_takes_only_what_it_has_places_for_and_whoever_comes_takes_the_rest() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default", partitions=4)
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "first") as first:
        places = serve(first, work=2)
        owner.put(LANE, [dispatch(number, run=f"r{number}") for number in range(40)])
        taken = await collect(first, 2, places=places)
        more = asyncio.create_task(collect(first, 1))
        async with queue_of(prefix, "second") as second:
            serve(second, work=100)
            seen = await collect(second, 1)
            assert not more.done(), "it is full"
            places.free["work"] += 100
            first.freed(LANE)
            found = {*taken, *await more, *seen}
            both = [asyncio.create_task(_collect_into(queue, found)) for queue in (first, second)]
            await until(lambda: found == set(range(40)))
            for task in both:
                task.cancel()


async def test_everybody_who_serves_a_lane_has_some_of_its_partitions() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default", partitions=4)
    async with queue_of(prefix, "a") as a, queue_of(prefix, "b") as b, queue_of(prefix, "c") as c:
        readers: list[LaneReader] = []
        for queue, shares in ((a, [4]), (b, [2, 2]), (c, [1, 1, 2])):
            serve(queue)
            readers.append(queue.readers[LANE])
            await until(partial(_shares_are, shares, readers))


def _shares_are(shares: list[int], readers: list[LaneReader]) -> bool:
    return sorted(len(reader.partitions) for reader in readers) == shares


async def test_whoever_serves_before_its_topic_is_there_is_handed_what_comes_then() -> None:
    """As one that starts when its broker has just started, and tells of no topics yet."""
    prefix = new_prefix()
    await make_topics(prefix)
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "first") as first:
        serve(first)
        await until(lambda: all(reader.joined for reader in first.readers.values()))
        await make_topics(prefix, "default", replies=False)
        owner.put(LANE, [dispatch(1)])
        assert await collect(first, 1) == [1]


async def _collect_into(queue: KafkaQueue, found: set[int]) -> None:
    while True:
        found.update(item.epoch for item in await queue.take(LANE))


async def test_garbage_in_a_pool_is_counted_and_the_rest_flows() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "worker") as worker:
        serve(worker)
        foreign = msgspec.structs.replace(dispatch(7), v=2)
        parcels = [{"v": 2, "dispatch": dispatch(7)}, {"v": 1, "dispatch": foreign}]
        garbage = [b"", b"\xff\xfe", b"{}", b"[" * 100_000, *map(msgspec.json.encode, parcels)]
        for value in garbage:
            owner.put_raw(LANE, value)
        owner.put(LANE, [dispatch(1, pool="other"), dispatch(2)])
        assert await collect(worker, 1) == [2]
        assert worker.garbage == len(garbage) + 1


@pytest.mark.parametrize("partitions", [1, 3])
async def test_records_that_nobody_can_decode_are_garbage_and_hold_up_neither_their_lane_nor_its_next_member(
    partitions: int,
) -> None:
    """A header that is named in bytes that are no text; what stands before it in its batch is good."""
    prefix = new_prefix()
    await make_topics(prefix, "default", partitions=partitions)
    good = msgspec.json.encode({"v": 1, "dispatch": dispatch(99)})
    numbers = list(range(1, 31))
    async with queue_of(prefix, "owner") as owner:
        async with queue_of(prefix, "first") as first:
            serve(first)
            for number in numbers:
                owner.put(LANE, [dispatch(number)])
                if number == 10:
                    await send_unreadable(session_kafka().bootstrap, lane_topic(prefix, LANE), 0, before=good)
            found: set[int] = set()
            taking = asyncio.create_task(_collect_into(first, found))
            await until(lambda: found == {*numbers, 99})
            taking.cancel()
            assert first.garbage == 2
            settle(first, [*sorted(found)])
            await acknowledged(prefix, len(numbers) + 3)
        await send_unreadable(session_kafka().bootstrap, lane_topic(prefix, LANE), 0)
        owner.put(LANE, [dispatch(100)])
        async with queue_of(prefix, "second") as second:
            serve(second)
            assert await collect(second, 1) == [100]


async def test_replies_that_nobody_can_decode_are_garbage_and_those_behind_them_are_heard() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    hints = [CancelHint(run="r", task="t", epoch=number) for number in range(3)]
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "1") as worker:
        heard: list[object] = []
        worker.listen("client/1", heard.extend)
        owner.reply("client/1", hints[:1])
        await until(lambda: heard == hints[:1])
        good = msgspec.json.encode(ReplyRecord(to="client/1", replies=(hints[1],)))
        await send_unreadable(session_kafka().bootstrap, replies_topic(prefix), 0, before=good)
        owner.reply("client/1", hints[2:])
        await until(lambda: heard == hints)
        assert worker.reply_garbage == 2


async def test_a_parcel_whose_dispatch_is_not_in_the_store_is_left_out_and_the_rest_flows() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "worker") as worker:  # each with a store of its own
        serve(worker)
        owner.put(LANE, [large(1)])
        await until(lambda: not vars(vars(owner)["_parcels"])["_storing"])
        owner.put(LANE, [dispatch(2)])
        assert await collect(worker, 1) == [2]
        assert worker.garbage == 0


async def test_a_session_that_is_longer_than_a_request_may_take_starts_a_worker() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    longer_s = 2 * KafkaSettings().request_timeout_s
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "worker", session_s=longer_s) as worker:
        serve(worker)
        owner.put(LANE, [dispatch(1)])
        assert await collect(worker, 1) == [1]


async def test_replies_of_another_version_are_left_out_and_counted_and_the_rest_is_heard() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    hint = CancelHint(run="r", task="t", epoch=1)
    foreign = msgspec.structs.replace(hint, v=2)
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "1") as worker:
        heard: list[object] = []
        worker.listen("client/1", heard.extend)
        sending = vars(owner)["_sending"]
        for record in (
            ReplyRecord(v=2, to="client/1", replies=(hint,)),
            ReplyRecord(to="client/1", replies=(hint, foreign)),
        ):
            sending.put(Letter(replies_topic(prefix), msgspec.json.encode(record), 0))
        owner.reply("client/1", [hint])
        await until(lambda: bool(heard))
        assert heard == [hint]
        assert worker.reply_garbage == 2


async def test_replies_that_do_not_fit_into_a_record_go_in_several_in_their_order() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    hints = [CancelHint(run="r" * 300, task="t", epoch=number) for number in range(10_000)]
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "1") as worker:
        heard: list[object] = []
        worker.listen("client/1", heard.extend)
        owner.reply("client/1", hints)
        await until(lambda: len(heard) == len(hints))
        assert heard == hints


async def test_hints_reach_everybody_who_serves_the_lane_and_take_back_what_they_have_not_begun() -> None:
    lane = LaneIntake()
    lane.taker = Places({"work": 10})
    acknowledged: list[int] = []
    for number in (1, 2):
        await lane.offer(dispatch(number), lambda number=number: acknowledged.append(number))  # type: ignore[misc]
    lane.hinted([CancelHint(run="r", task="t", epoch=1)])
    assert acknowledged == [1]
    assert [item.epoch for item in await lane.take()] == [2]


async def test_a_full_taker_holds_up_whoever_reads_for_it() -> None:
    lane = LaneIntake()
    places = Places({"work": 1, "other": 1})
    lane.taker = places
    await lane.offer(dispatch(1), int)
    second = asyncio.ensure_future(lane.offer(dispatch(2), int))
    await lane.offer(dispatch(3, key="other"), int)
    await lane.offer(dispatch(4, key="served by nobody here"), int)
    assert not second.done()
    assert [item.epoch for item in await lane.take()] == [1, 3, 4]
    lane.freed()
    await second
    assert [item.epoch for item in await lane.take()] == [2]


async def test_an_attempt_that_came_twice_is_handed_once_and_settled_for_both() -> None:
    lane = LaneIntake()
    lane.taker = Places({"work": 10})
    acknowledged: list[str] = []
    await lane.offer(dispatch(1), lambda: acknowledged.append("first"))
    await lane.offer(dispatch(1), lambda: acknowledged.append("again"))
    assert [item.epoch for item in await lane.take()] == [1]
    lane.settled(attempt_of(dispatch(1)))
    assert (acknowledged, lane.unsettled) == (["first", "again"], 0)


async def test_answers_to_a_process_are_heard_from_its_start_on_whatever_it_is_asked() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "1") as worker:
        heard: list[object] = []
        owner.reply("client/1", [CancelHint(run="r", task="t", epoch=1)])
        owner.reply(lane_address(LANE), [CancelHint(run="r", task="t", epoch=2)])
        worker.listen("client/1", heard.extend)
        owner.reply("client/1", [CancelHint(run="r", task="t", epoch=3)])
        await until(lambda: CancelHint(run="r", task="t", epoch=3) in heard)
