"""Whether the topics are as they have to be. Replication is the cluster's affair."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.doctor.finding import Finding
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.pool_names import can_be_pool
from dagbok.events.log.kafka_topics import check as differences
from dagbok.events.log.kafka_topics import declared


async def topics(site: Site) -> Sequence[Finding]:
    """Those of the log, and of the pools that are named and can be there."""
    pools = [pool for pool in site.pools if can_be_pool(site.prefix, pool)]
    wanted = declared(site.prefix, site.log.partitions, pools=pools)
    wrong = await differences(site.settings, wanted)
    if not wrong:
        return [Finding("topics", "ok", f"{len(wanted)} topics as they have to be")]
    of = [f"--partitions {site.log.partitions}", *[f"--pool {pool}" for pool in pools]]
    create, check = site.command("topics create", *of), site.command("topics check", *of)
    advice = f"{create} makes what is missing; {check} tells the rest"
    return [
        Finding("topics", "failed", f"{each.topic}: {each.what} is {each.found}, not {each.wanted}", advice)
        for each in wrong
    ]
