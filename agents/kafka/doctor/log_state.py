"""What the log itself says: which partitions can be decided for, and what stands still in them."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.doctor import standstill
from dagbok.agents.doctor.finding import Finding
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.looking import look_at_all


async def partitions(site: Site) -> Sequence[Finding]:
    """A scheduler could decide for each. Sets `Site.looks`."""
    site.looks = await look_at_all(site.settings, site.log, site.artifacts, site.now_ms)
    return standstill.halted(site.looks, site.log.partitions, site.command)


async def still(site: Site) -> Sequence[Finding]:
    """What waits for somebody, or for nothing. Of a partition that halts nothing is known."""
    if not site.looks:
        return ()  # they could not be read, which is said already
    late = "its partition has no scheduler, or one that is behind: see what is said of them above"
    return [
        *standstill.keys(site.looks, site.now_ms, site.start),
        *standstill.deadlines(site.looks, site.now_ms, late),
        *standstill.paused(site.looks, site.now_ms, site.command),
    ]
