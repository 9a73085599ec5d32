"""What Faust's reader does around a rebalance, and at its end. The order of events is made by hand."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest

from dagbok.agents.kafka.pool import LaneReader
from tests.contract.queue_sites import LANE, collect, dispatch, serve, until
from tests.kafka.queue_site import make_topics, new_prefix, queue_of


class Reading:
    """The insides of a reader that has joined. Its fetches last until something comes."""

    def __init__(self, reader: LaneReader, monkeypatch: pytest.MonkeyPatch) -> None:
        self.consumer = vars(reader)["_app"].consumer
        self.waits = threading.Event()
        """A fetch has begun, and nothing is there."""
        self.went_back = asyncio.Event()
        fetcher = self.consumer._thread._consumer._fetcher
        fetch, seek = fetcher.fetched_records, self.consumer.perform_seek

        async def fetch_patiently(*args: Any, **named: Any) -> Any:
            self.waits.set()
            return await fetch(*args, **named | {"timeout": 60.0})

        async def seek_and_tell() -> None:
            await seek()
            self.went_back.set()

        monkeypatch.setattr(fetcher, "fetched_records", fetch_patiently)
        monkeypatch.setattr(self.consumer, "perform_seek", seek_and_tell)


async def test_what_a_fetch_brings_while_a_rebalance_holds_the_flow_is_handed_out_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when the group has acknowledged nothing yet, so that there is nothing to go back to."""
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "owner") as owner, queue_of(prefix, "first") as first:
        serve(first)
        reader = first.readers[LANE]
        await until(lambda: bool(reader.partitions) and vars(reader)["_app"].consumer.can_resume_flow.is_set())
        reading = Reading(reader, monkeypatch)
        await until(reading.waits.is_set)
        reading.consumer.stop_flow()
        owner.put(LANE, [dispatch(1), dispatch(2)])
        await reading.went_back.wait()
        reading.consumer.resume_flow()
        assert await collect(first, 2) == [1, 2]


async def test_a_reader_that_a_rebalance_catches_at_its_end_leaves_no_connection_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when several of a pool end one after the other: each one's leaving is a rebalance for the rest."""
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "first") as first:
        serve(first)
        reader = first.readers[LANE]
        await until(lambda: bool(reader.partitions))
        app = vars(reader)["_app"]
        end = app.on_stop

        async def end_after_rebalance() -> None:
            await app._on_partitions_revoked(set(app.consumer.assignment()))
            await end()

        monkeypatch.setattr(app, "on_stop", end_after_rebalance)
        connections = list(app.consumer._thread._consumer._client._conns.values())
        assert connections
    assert not [connection for connection in connections if connection.connected()]


async def test_no_fetch_waits_for_long_at_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that begins while records of a partition wait to be handed out leaves the partition out; what comes there
    next waits for its end. Faust's own fetches take up to 1.5 s."""
    prefix = new_prefix()
    await make_topics(prefix, "default")
    async with queue_of(prefix, "first") as first:
        serve(first)
        reader = first.readers[LANE]
        await until(lambda: bool(reader.partitions))
        client = vars(reader)["_app"].consumer._thread._consumer._client
        send, waits = client.send, list[int]()

        async def send_and_note(node: int, request: object, **named: Any) -> Any:
            if isinstance(request, FetchRequest):
                waits.append(vars(request)["_max_wait_ms"])
            return await send(node, request, **named)

        monkeypatch.setattr(client, "send", send_and_note)
        await until(lambda: len(waits) > 1)
    assert max(waits) <= 200
