"""How far the broker's clock is from this machine's."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import msgspec
from aiokafka import AIOKafkaProducer

from dagbok.agents.doctor.finding import Finding, State
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.names import replies_topic
from dagbok.agents.kafka.replies import ReplyRecord
from dagbok.agents.scheduler.inbox import MAX_CLOCK_AHEAD_MS
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_options import client_options

CLOCK_MS: Final = 1_000
"""A clock that is off by more is worth a word; by `MAX_CLOCK_AHEAD_MS` a partition halts."""


async def clock(site: Site) -> Sequence[Finding]:
    """Measured by a record that nobody waits for: the broker puts its time on it. Sets `Site.off_ms`."""
    producer = AIOKafkaProducer(**client_options(site.settings), acks=1)
    try:
        await producer.start()
        value = msgspec.json.encode(ReplyRecord(to="doctor/clock", replies=()))
        began_ms, began_s = system_ms(), time.monotonic()
        landed = await producer.send_and_wait(replies_topic(site.prefix), value, partition=0)
        trip_ms = (time.monotonic() - began_s) * 1000
    finally:
        await producer.stop()
    off_ms = site.off_ms = round(landed.timestamp - (began_ms + trip_ms / 2))
    numbers = {"off_ms": off_ms, "trip_ms": round(trip_ms)}
    told = f"the broker's clock is {abs(off_ms)} ms {'ahead of' if off_ms > 0 else 'behind'} this machine's"
    if abs(off_ms) <= max(CLOCK_MS, trip_ms):
        return [Finding("clock", "ok", told, numbers=numbers)]
    state: State = "failed" if abs(off_ms) >= MAX_CLOCK_AHEAD_MS else "warning"
    return [Finding("clock", state, told, "let both follow a time server (NTP)", numbers)]
