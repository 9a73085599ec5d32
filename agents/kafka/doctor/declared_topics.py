"""Whether the topics are as they have to be. Replication is the cluster's affair."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.doctor.finding import Finding
from dagbok.agents.kafka.doctor.site import Site
from dagbok.events.log.kafka_topics import check as differences
from dagbok.events.log.kafka_topics import declared


async def topics(site: Site) -> Sequence[Finding]:
    """Those of the log, and of the pools that are named."""
    wanted = declared(site.prefix, site.log.partitions, pools=site.pools)
    wrong = await differences(site.settings, wanted)
    if not wrong:
        return [Finding("topics", "ok", f"{len(wanted)} topics as they have to be")]
    advice = "dagbok topics create makes what is missing; dagbok topics check tells the rest"
    return [
        Finding("topics", "failed", f"{each.topic}: {each.what} is {each.found}, not {each.wanted}", advice)
        for each in wrong
    ]
