"""A broker that is away, at the start and in the middle: it is waited for with a word, and nothing is lost."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.workers.definitions import Registry
from tests.kafka_kills.member import SESSION_S
from tests.kafka_kills.site import PAUSE_S, SERVING, TIMEOUT_S, Site
from tests.kafka_kills.tables import check_tables
from tests.kafka_kills.truth import check_site
from tests.servers.kafka_broker import Broker
from tests.support.scale import scale

AWAY_S = scale(4, 12)
"""Longer than the session of the groups; at full scale also longer than any request."""


async def test_a_broker_that_is_away_at_the_start_and_restarts_in_the_middle_is_waited_for(
    site: Site, broker: Broker
) -> None:
    await asyncio.to_thread(broker.stop)
    members = [await site.begin(roles) for roles in ("scheduler", SERVING, "projector")]
    for member in members:
        assert "does not answer" in await member.logged(lambda text: text.count("waiting:") >= 2)
    await asyncio.to_thread(broker.start)
    streams = [await site.start(f"before {number}") for number in range(4)]
    await asyncio.to_thread(broker.stop)
    await asyncio.sleep(AWAY_S)
    await asyncio.to_thread(broker.start)
    streams += [await site.start(f"after {number}") for number in range(4)]
    await site.ended(streams)
    await check_site(site)
    await check_tables(site)


async def test_who_begins_to_take_part_while_no_broker_answers_takes_part_as_soon_as_one_does(
    site: Site, broker: Broker
) -> None:
    """Connected, and the broker goes before the groups are joined."""
    process = await KafkaProcess.open(site.settings, str(site.folder), Registry(), session_s=SESSION_S)
    await asyncio.to_thread(broker.stop)
    with capture_logs() as lines:
        process.schedule()
        process.work(["default"])
        async with asyncio.timeout(TIMEOUT_S):
            while not {"group.waits", "lane.waits"} <= {line["event"] for line in lines}:  # noqa: ASYNC110
                await asyncio.sleep(PAUSE_S)
    await asyncio.to_thread(broker.start)
    async with asyncio.timeout(TIMEOUT_S):
        taking = asyncio.ensure_future(_takes_part(process))
        await asyncio.wait((taking, process.failure), return_when=asyncio.FIRST_COMPLETED)
    assert taking.done(), process.failure.result()
    await process.close()


async def _takes_part(process: KafkaProcess) -> None:
    """It decides, and reads both lanes of its pool."""
    assert process.scheduler is not None
    await process.scheduler.owned(0)
    while not all(reader.partitions for reader in process.queue.readers.values()):  # noqa: ASYNC110 – Faust tells nobody
        await asyncio.sleep(0.1)
