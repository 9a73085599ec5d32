"""Whether somebody decides."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.doctor.finding import Finding
from dagbok.agents.kafka.doctor.role import role
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.names import scheduler_group
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.port import COMMANDS, EVENTS
from dagbok.events.places import commit_at


async def scheduler(site: Site) -> Sequence[Finding]:
    """Somebody decides, and how many commands wait."""
    members = await site.offsets.members(scheduler_group(site.prefix))
    waiting = [await _undecided(site.log, number) for number in range(site.log.partitions)]
    return [role("scheduler", members, waiting, "commands are not decided", site.start("scheduler"))]


async def _undecided(log: KafkaLog, number: int) -> int:
    """Commands behind the one that the last record of `events` names. When that does not count, it is about so."""
    end = (await log.bounds(COMMANDS, number)).end
    events = (await log.bounds(EVENTS, number)).end
    parts = await commit_at(log, number, events - 1)
    return max(0, end - (0 if parts is None else parts[0].command_offset + 1))
