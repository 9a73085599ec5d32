"""Two tenants on one cluster, each with the ids of the other."""

from __future__ import annotations

import random
import re
import secrets

from dagbok.events.rule import GENESIS
from dagbok.events.run import commands as c
from dagbok.events.run.values import Claim, Failure
from dagbok.projections.reading import read_effective
from tests.kafka_kills.site import EVERYBODY, Site
from tests.kafka_kills.truth import check_site


async def test_two_tenants_cannot_reach_each_other_s_runs_and_learn_nothing_of_them(site: Site) -> None:
    chance = random.Random(7)
    await site.add(EVERYBODY)
    tenants = ("acme", "evil")
    streams = {name: [await site.start(f"{name} {n}", tenant=name) for n in range(3)] for name in tenants}
    asked = 0
    for _ in range(60):
        victim, attacker = chance.sample(tenants, 2)
        stream, task = chance.choice(streams[victim]), chance.choice(("root", "last", "child-1", "no-such"))
        answer = await site.ask(stream, chance.choice(_commands(task)), tenant=attacker)
        nothing = await site.ask(f"run:{secrets.token_hex(16)}", chance.choice(_commands(task)), tenant=attacker)
        assert (answer.accepted, answer.code) == (nothing.accepted, nothing.code) == (False, "not_found")
        assert (answer.advice, answer.retry) == (nothing.advice, nothing.retry)
        told = (answer.reason or "").replace(stream, "").replace(f"{attacker}/docs", "")
        assert not {victim, task} & set(re.findall(r"[\w-]+", told)), answer
        asked += 1
    await site.ended(streams["acme"] + streams["evil"])
    refusals = 0
    for partition in range(site.partitions):
        position = GENESIS
        while True:
            position, commits = await read_effective(site.process.log, partition, position, 500)
            if not commits:
                break
            for commit in commits:
                if b"not_found" in bytes(commit.stored_body):
                    refusals += 1
                    assert commit.seal.stream is None, "it belongs to no stream"
    assert refusals == 2 * asked
    await check_site(site)


def _commands(task: str) -> list[c.RunCommand]:
    claim = Claim("p", 1, "n")
    return [
        c.PauseRun("mine now"),
        c.CancelRun("mine now"),
        c.ResumeRun(),
        c.CancelTask(task),
        c.RetryTask(task),
        c.ResolveBlock(task),
        c.StartAttempt(task, 1, claim),
        c.FailAttempt(task, 1, claim, Failure("retryable", "tool", "ValueError", "no")),
        c.ReportGone("p"),
    ]
