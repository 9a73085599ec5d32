"""Whether somebody serves the pools, for each kind of attempt."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dagbok.agents.doctor import standstill
from dagbok.agents.doctor.finding import Finding
from dagbok.agents.kafka.doctor.role import role
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.names import lane_group, lane_topic
from dagbok.agents.kafka.pool_names import can_be_pool
from dagbok.agents.queue.port import KINDS, Lane, lane_of
from dagbok.events.log.kafka_admin import administrator
from dagbok.events.log.kafka_client import Place


async def served(site: Site) -> Sequence[Finding]:
    """Somebody serves each pool that can be there, and how much was sent and is not taken up."""
    waits = standstill.keys_of(site.looks)
    pools = dict.fromkeys([*site.pools, *sorted(pool for (_, pool), _ in waits)])
    lanes = [lane_of(kind, pool) for pool in pools if can_be_pool(site.prefix, pool) for kind in KINDS]
    async with administrator(site.settings) as admin:
        there = await admin.topics([lane_topic(site.prefix, lane) for lane in lanes])
    return [
        await _lane(site, lane, waits, is_there=lane_topic(site.prefix, lane) in there)
        for lane in lanes
        if lane[1] in site.pools or standstill.waiting_in(waits, lane, 0)[0]
    ]


async def _lane(site: Site, lane: Lane, waits: standstill.Waits, *, is_there: bool) -> Finding:
    topic, group = lane_topic(site.prefix, lane), lane_group(site.prefix, lane)
    members = await site.offsets.members(group)
    sent = await _sent(site, topic, group) if is_there else [0]
    count, oldest_s, open_told = standstill.waiting_in(waits, lane, site.now_ms)
    advice = site.start(standstill.ROLE[lane[0]], lane[1])
    told = "attempts are not taken up" + (f"; {open_told}" if count else "")
    found = role(topic.removeprefix(site.prefix), members, sent, told, advice, waiting=count)
    numbers = {**found.numbers, "open": count, "oldest_s": oldest_s}
    return msgspec.structs.replace(found, numbers=numbers, about={"kind": lane[0], "pool": lane[1]})


async def _sent(site: Site, topic: str, group: str) -> Sequence[int]:
    """What lies in the topic and nobody has acknowledged, by partition."""
    done = await site.offsets.done(group)
    places = [Place(topic, number) for number in range(site.log.partitions)]
    bounds = await site.offsets.bounds(places)
    return [bound.end - max(done.get(place, 0), bound.start) for place, bound in bounds.items()]
