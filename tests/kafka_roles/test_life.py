"""The life of a role: it starts, works, and ends in good order; without a broker it waits and says so."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress

from dagbok import TaskSpec
from dagbok.events.run import events as e
from tests.kafka_roles.role_site import MODULE, RoleSite

STOP_S = 10.0
"""Nothing runs here that would have to be waited for."""
GRACE_S = 10.0
"""So long a function that does not give way is waited for."""


def ones(count: int) -> list[TaskSpec]:
    return [TaskSpec(goal=f"task {number}", worker="ones", verifier="yes") for number in range(count)]


async def test_a_scheduler_and_a_worker_do_a_run_and_end_on_a_signal(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler")
    worker = await site.start("worker", "--import", str(MODULE))
    stream = await site.run("first", ones(20))
    found = await site.seen(stream, e.RunSucceeded)
    assert sum(isinstance(event, e.TaskVerified) for event in found) == 20
    began_s = time.monotonic()
    assert (await worker.stopped(signal.SIGTERM), await scheduler.stopped(signal.SIGINT)) == (0, 0)
    assert time.monotonic() - began_s < STOP_S


async def test_what_a_worker_has_in_hand_when_it_ends_is_handed_back(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("scheduler")
    worker = await site.start("worker", "--import", str(MODULE))
    stream = await site.run("long", [TaskSpec(goal="takes hours", worker="long", verifier="yes")])
    await site.seen(stream, e.AttemptStarted)
    assert await worker.stopped() == 0
    assert any(isinstance(event, e.AttemptReleased) for event in await site.seen(stream, e.AttemptReleased))


async def test_a_verifier_verifies_and_does_not_work(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("scheduler")
    verifier = await site.start("verifier", "--import", str(MODULE))
    serving = await verifier.logged("worker.serving")
    assert serving["kinds"] == ["verify"]
    stream = await site.run("second", ones(1))
    worker = await site.start("worker", "--import", str(MODULE))
    await site.seen(stream, e.RunSucceeded)
    assert (await verifier.stopped(), await worker.stopped()) == (0, 0)


async def test_a_role_waits_for_its_broker_with_a_word_and_can_be_ended_meanwhile(site: RoleSite) -> None:
    role = await site.start("scheduler", "--health-port", "0", DAGBOK_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1")
    line = await role.logged("waiting", what="broker")
    assert "127.0.0.1:1" in line["error"]
    ready = await role.told("/health/ready", 503)
    assert (ready["live"], ready["ready"]) == (True, False)
    assert "127.0.0.1:1" in ready["why"][0]
    assert (await role.get("/health/live"))[0] == 200
    assert await role.stopped() == 0


async def test_a_role_that_waits_for_its_topics_says_what_to_run_and_goes_on_when_they_are_there(
    site: RoleSite,
) -> None:
    scheduler = await site.start("scheduler")
    worker = await site.start("worker", "--import", str(MODULE), "--pool", "own")
    for role in (scheduler, worker):
        assert "dagbok topics create" in (await role.logged("waiting"))["advice"]
    await site.create_topics()
    await scheduler.logged("partition.owned")
    made = await worker.logged("topics.created")
    assert sorted(made["topics"]) == [f"{site.kafka.prefix}review.own", f"{site.kafka.prefix}work.own"]
    stream = await site.run("own", [TaskSpec(goal="g", worker="ones", verifier="yes", pool="own")])
    await site.seen(stream, e.RunSucceeded)


async def test_a_worker_for_a_pool_that_kafka_allows_no_topics_for_ends_with_what_it_may_be_called(
    site: RoleSite,
) -> None:
    await site.create_topics()
    done = await site.command("worker", "--import", str(MODULE), "--pool", "a/b")
    assert (done.status, "the characters A-Z a-z 0-9 . _ -" in done.told) == (2, True)


async def test_a_second_signal_ends_a_role_at_once(site: RoleSite) -> None:
    """Also where a function blocks the loop, so that the first one cannot be followed."""
    await site.create_topics()
    await site.start("scheduler")
    blocking = site.folder / "blocking.py"
    blocking.write_text(
        "import sys, time\n"
        "from dagbok import worker\n"
        "@worker('long')\n"
        "async def long(task):\n"
        "    print('it began', file=sys.stderr, flush=True)\n"
        "    time.sleep(3600)\n"
    )
    worker = await site.start("worker", "--import", str(blocking))
    await site.run("long", [TaskSpec(goal="takes hours", worker="long", verifier="yes")])
    await worker.said("it began")
    began_s = time.monotonic()
    ending = asyncio.create_task(worker.ended())
    while not ending.done():  # one that comes at once is not a second one
        with suppress(ProcessLookupError):
            worker.process.send_signal(signal.SIGTERM)
        await asyncio.wait((ending,), timeout=0.1)
    assert ending.result() == 128 + signal.SIGTERM
    assert time.monotonic() - began_s < GRACE_S


async def test_a_signal_that_comes_twice_at_once_is_one(site: RoleSite) -> None:
    """`timeout` sends it to the process and to its group."""
    await site.create_topics()
    worker = await site.start("worker", "--import", str(MODULE))
    await worker.logged("worker.serving")
    worker.process.send_signal(signal.SIGTERM)
    assert await worker.stopped() == 0
