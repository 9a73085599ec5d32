"""Other code: two versions side by side, and runs that wait while every process is replaced."""

from __future__ import annotations

import pytest

from dagbok.events.log.port import EVENTS
from dagbok.events.run import commands as c
from tests.kafka_kills.site import EVERYBODY, SERVING, Site
from tests.kafka_kills.tables import check_tables
from tests.kafka_kills.truth import check_site, raw_values
from tests.support.scale import scale

VERSIONS = ("more-fields", "other-fold", "decides-otherwise")


@pytest.mark.parametrize("version", VERSIONS[: scale(1, 3)])
async def test_two_versions_of_the_scheduler_share_a_cluster_in_a_rollout(site: Site, version: str) -> None:
    """What the newer one writes is read by the older one: fields that it does not know it passes over. A snapshot of
    another fold is nobody's but its own. Code that decides otherwise is harmless: who reads does not decide."""
    await site.add(f"{SERVING},projector")
    for round in range(scale(1, 2)):
        for name in ("", version):
            await site.add("scheduler", MEMBER_VERSION=name)
            for other in site.of("scheduler")[:-1]:
                await (site.kill(other) if round else site.leave(other))
            await site.ended([await site.start(f"{round} {name} {number}") for number in range(4)])
    await site.add("scheduler", MEMBER_VERSION=version)
    await site.ended([await site.start(f"both {number}") for number in range(6)])
    await check_site(site, images=False)
    await check_tables(site)
    if version == "more-fields":
        values = [await raw_values(site.settings, EVENTS, number) for number in range(site.partitions)]
        assert any(b"added_later" in value for some in values for _, value in some)


async def test_a_run_that_waits_while_every_process_is_replaced_by_a_newer_one_goes_on(site: Site) -> None:
    old = await site.add(EVERYBODY)
    stream = await site.start("parked")
    await site.seen(stream, 1)
    assert (await site.ask(stream, c.PauseRun("the upgrade"))).accepted
    await site.leave(old)
    await site.add(EVERYBODY, MEMBER_VERSION="more-fields")
    await site.ended([await site.start("new")])
    assert stream not in site.ends
    assert (await site.ask(stream, c.ResumeRun())).accepted
    await site.ended([stream])
    await check_site(site, images=False)
