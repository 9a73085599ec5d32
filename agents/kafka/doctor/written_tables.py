"""Whether the tables can be read, and somebody writes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dagbok.agents.doctor.finding import Finding
from dagbok.agents.kafka.doctor.role import role
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.known import stands_of_tables
from dagbok.agents.kafka.names import projector_group
from dagbok.events.errors import LogLost
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.port import EVENTS
from dagbok.events.rule import Position
from dagbok.projections.reading import check_stand


async def projector(site: Site) -> Sequence[Finding]:
    """The tables can be read, somebody writes them, and how far they are behind."""
    log = site.log
    members = await site.offsets.members(projector_group(site.prefix))
    if site.database is None:
        told = "no database is named: nothing is known of the tables"
        return [Finding("projector", "ok", told, "--database, or DAGBOK_DATABASE", {"members": members})]
    stands = await asyncio.to_thread(stands_of_tables, site.database, range(log.partitions))
    ends = [(await log.bounds(EVENTS, number)).end for number in range(log.partitions)]
    behind = [max(0, end - stand.next_offset) for end, stand in zip(ends, stands, strict=True)]
    found = role("projector", members, behind, "records are not in the tables", site.start("projector"))
    return [found, *[wrong for number, stand in enumerate(stands) if (wrong := await _foreign(log, number, stand))]]


async def _foreign(log: KafkaLog, number: int, stand: Position) -> Finding | None:
    """The tables were not built from this log."""
    try:
        await check_stand(log, number, stand)
    except LogLost as error:
        told = f"halts at partition {number}: {error.message} ({error.code})"
        return Finding("projector", "failed", told, error.advice, about={"partition": number})
    return None
