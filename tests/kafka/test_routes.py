"""What is sent to a pool that has no topic: it holds up nobody, is said once, and flows as soon as there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from structlog.testing import capture_logs

from dagbok.agents.kafka.queue import KafkaQueue
from dagbok.agents.kafka.routes import KEEP_S, MOST_ASIDE, Letter, Routes
from dagbok.agents.queue import lane_address, lane_of
from dagbok.events.envelope import CancelHint
from tests.contract.queue_sites import LANE, TIMEOUT_S, collect, dispatch, serve, until
from tests.kafka.queue_site import make_topics, new_prefix, queue_of

NOWHERE = lane_of("work", "gpuu")
ILLEGAL = lane_of("work", "the graphics cards of ann/bob ✓")
SOON_S = 3.0
"""Less than the time a client waits for a topic."""


async def test_attempts_in_pools_without_a_topic_hold_up_no_other() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    hint = CancelHint(run="r", task="t", epoch=9)
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "worker") as worker:
        heard: list[object] = []
        serve(worker)
        worker.listen(lane_address(LANE), heard.extend)
        owner.put(LANE, [dispatch(1)])
        assert await collect(worker, 1) == [1]
        with capture_logs() as logs:
            for number in range(100):
                owner.put(NOWHERE, [dispatch(number, pool="gpuu")])
                owner.put(ILLEGAL, [dispatch(number, pool=ILLEGAL[1])])
            owner.put(LANE, [dispatch(2)])
            owner.hint(LANE, [hint])
            async with asyncio.timeout(SOON_S):
                assert await collect(worker, 1) == [2]
                while not heard:  # noqa: ASYNC110 – the listener has no event
                    await asyncio.sleep(0.01)
            await until(lambda: len(_told(logs)) == 2)
        assert {entry["topic"] for entry in _told(logs)} == {f"{prefix}work.gpuu", f"{prefix}work.{ILLEGAL[1]}"}
        assert (owner.lost, owner.has_topic(LANE), owner.has_topic(NOWHERE)) == (0, True, False)


async def test_what_waited_for_a_topic_flows_in_its_order_when_it_is_made() -> None:
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "worker") as worker:
        owner.put(NOWHERE, [dispatch(number, pool="gpuu") for number in range(5)])
        await until(lambda: f"{prefix}work.gpuu" in vars(_routes(owner))["_missing"])
        await make_topics(prefix, "gpuu", replies=False)
        owner.put(NOWHERE, [dispatch(5, pool="gpuu")])
        serve(worker, NOWHERE)
        assert await collect(worker, 6, NOWHERE) == [0, 1, 2, 3, 4, 5]
        assert owner.has_topic(NOWHERE)


class _Cluster:
    """Knows of no topics."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return None


class _Client:
    """Of a cluster without topics, which counts what it is asked."""

    def __init__(self) -> None:
        self.cluster = _Cluster()
        self.asked: list[object] = []
        self.was_asked = asyncio.Event()

    def get_random_node(self) -> int | None:
        return 1

    async def send(self, node_id: int, request: object) -> _Client:
        self.asked.append(request)
        self.was_asked.set()
        return self

    def to_object(self) -> dict[str, list[dict[str, object]]]:
        return {"topics": []}

    def add_topic(self, topic: str) -> object:
        raise AssertionError("none is there")

    async def force_metadata_update(self) -> bool:
        raise AssertionError("none is there")


async def test_what_waits_for_topics_is_bounded_in_number_and_time() -> None:
    now_s, client = 0.0, _Client()
    routes = Routes(client, lambda _: None, lambda: now_s)
    for number in range(MOST_ASIDE + 10):
        routes.keep(Letter(f"work.{number}", b"x"))
    missing = vars(routes)["_missing"]
    assert len(missing) == MOST_ASIDE
    assert "work.9" not in missing, "the oldest went first"
    now_s = KEEP_S + 1
    running = asyncio.create_task(routes.run())
    async with asyncio.timeout(TIMEOUT_S):
        while missing:  # noqa: ASYNC110 – it has no event
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not client.asked, "nobody waits for them any more"


async def test_many_topics_that_are_missing_are_asked_for_together() -> None:
    client = _Client()
    routes = Routes(client, lambda _: None, lambda: 0.0)
    for number in range(400):
        routes.keep(Letter(f"work.{number}", b"x"))
    running = asyncio.create_task(routes.run())
    async with asyncio.timeout(TIMEOUT_S):
        await client.was_asked.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(client.asked) == 1


def _routes(queue: KafkaQueue) -> Routes:
    routes = vars(vars(queue)["_sending"])["_routes"]
    assert isinstance(routes, Routes)
    return routes


def _told(logs: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    return [entry for entry in logs if entry["event"] == "queue.no_topic"]
