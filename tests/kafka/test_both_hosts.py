"""`Dagbok` on a data folder and on Apache Kafka: the same methods with the same answers, in the process that decides
and in one that only asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from dagbok import Code, Dagbok, Limits, Outcome, Refused, TaskContext, When, worker
from dagbok.agents.hosting.embedded import Own
from dagbok.agents.hosting.port import Host
from dagbok.agents.queue import Queue
from dagbok.events.envelope import Reply, Sender, run_command
from dagbok.events.errors import InvalidInput
from dagbok.events.ids import run_stream
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.run.commands import PauseRun
from dagbok.listing import RunEvent
from tests.support.hosts import TIMEOUT_S, spec, yes

SESSION_S = 1.5


@worker("waits")
async def waits(task: TaskContext) -> Outcome:
    """Until its gate is open."""
    await GATE.wait()
    return Outcome.candidate(task.task_id)


@worker("fails")
async def fails(task: TaskContext) -> Outcome:
    """Until somebody has a note for it."""
    if task.problem is None:
        raise ValueError("it cannot be")
    return Outcome.candidate(task.task_id)


@worker("asks")
async def asks(task: TaskContext) -> Outcome:
    """A person first."""
    return Outcome.blocked("who pays?") if task.problem is None else Outcome.candidate(task.problem.note)


@worker("parts")
async def parts(task: TaskContext) -> Outcome:
    """Two others do it."""
    if task.phase == "integrate":
        return Outcome.candidate([task.dependencies[name].json() for name in ("left", "right")])
    return Outcome.decompose([spec("waits", id="left"), spec("waits", id="right")])


GATE = asyncio.Event()


class Member(Protocol):
    """Joins with workers and decides, or, as a client, only asks."""

    def __call__(self, *, client: bool = False) -> AbstractAsyncContextManager[Dagbok]: ...


@pytest.fixture(params=["folder", "kafka"])
async def member(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Member:
    """One of the processes on one log."""
    monkeypatch.setattr(f"{__name__}.GATE", asyncio.Event())
    definitions = (yes, waits, fails, asks, parts)
    if request.param == "folder":

        def joined(*, client: bool = False) -> AbstractAsyncContextManager[Dagbok]:
            own: Own = "never" if client else "auto"
            return Dagbok.embedded(tmp_path, *definitions, own=own, serve=not client, projector="none")

        return joined
    settings: KafkaSettings = request.getfixturevalue("settings")
    await topics.create(settings, topics.declared(settings.prefix, 2))

    def connected(*, client: bool = False) -> AbstractAsyncContextManager[Dagbok]:
        return Dagbok.connect(
            *definitions,
            kafka=settings,
            artifacts=str(tmp_path),
            serve=not client,
            schedule=not client,
            session_s=SESSION_S,
        )

    return connected


@pytest.fixture(autouse=True)
async def _in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(2 * TIMEOUT_S):
        yield


async def seen(dagbok: Dagbok, run: str, after: int = 0) -> list[RunEvent]:
    """All events of a run."""
    return [event async for event in dagbok.events(run, after=after)]


def host_of(dagbok: Dagbok) -> Host:
    """Whichever it is."""
    try:
        return dagbok.host
    except InvalidInput:
        return dagbok.kafka_host


def queue_of(dagbok: Dagbok) -> Queue:
    """What its answers leave by."""
    try:
        return dagbok.host.queue
    except InvalidInput:
        return dagbok.kafka_host.process.queue


async def test_events_are_the_same_in_both_without_a_gap(member: Member) -> None:
    async with member() as decider, member(client=True) as client:
        run = await client.start([spec("waits", id=f"t{n}") for n in range(5)])
        live = [asyncio.create_task(seen(dagbok, run)) for dagbok in (decider, client)]
        await asyncio.sleep(0)
        GATE.set()
        assert (await client.wait(run)).succeeded
        mine, theirs = await asyncio.gather(*live)
        assert mine == theirs
        assert [event.seq for event in mine] == list(range(1, len(mine) + 1))
        assert (mine[0].type, mine[-1].type) == ("RunStarted", "RunSucceeded")
        assert mine[0].actor == "user:local"
        # Later, and from anywhere in between, they are the same again.
        for dagbok in (decider, client):
            assert await seen(dagbok, run) == mine
            assert await seen(dagbok, run, after=7) == mine[7:]
            assert await seen(dagbok, run, after=len(mine)) == []


async def test_a_decomposition_is_told_whole_from_a_client(member: Member) -> None:
    GATE.set()
    async with member(), member(client=True) as client:
        result = await client.run(spec("parts", id="root"))
        assert (result.json(), result.counts) == (["left", "right"], {"verified": 3})


async def test_a_foreign_tenant_sees_nothing_and_touches_nothing(member: Member) -> None:
    async with member() as decider, member(client=True) as client:
        run = await decider.start(spec("waits"), tenant="acme")
        for dagbok in (decider, client):
            for asked in (dagbok.result, dagbok.wait, dagbok.cancel, dagbok.pause):
                with pytest.raises(Refused) as refused:
                    await asked(run, tenant="rival")
                assert refused.value.code == Code.NOT_FOUND
            with pytest.raises(Refused):
                await anext(dagbok.events(run, tenant="rival"))
            assert dagbok.status(run, tenant="rival") is None
            assert dagbok.status(run, tenant="acme") == "running"


async def test_a_repeated_refusal_has_the_reason_and_advice_of_the_first(member: Member) -> None:
    async with member() as decider, member(client=True) as client:
        run = await decider.start(spec("waits"))
        await decider.cancel(run)
        sender = Sender("local", "default", "user:ann")
        pause = run_command(sender, run_stream(run), PauseRun("x"), id="the-one", now_ms=system_ms())
        first = await host_of(decider).ask(pause)
        assert (first.accepted, bool(first.reason), bool(first.advice)) == (False, True, True)
        for dagbok in (decider, client):
            assert await host_of(dagbok).ask(pause) == first


async def test_repairs_are_the_same_from_a_client(member: Member) -> None:
    async with member(), member(client=True) as client:
        run = await client.start([spec("fails", id="bad", max_attempts=1), spec("waits", id="good")])
        GATE.set()
        assert (await client.wait(run)).status == "failed"
        assert (await client.retry(run, "bad", note="try again")).accepted
        assert (await client.wait(run)).succeeded
        other = await client.start([spec("fails", id="bad2", max_attempts=1)])
        assert (await client.wait(other)).failed
        replacement = spec("waits", id="instead")
        assert (await client.supersede(other, "bad2", replacement)).replacement == "instead"
        assert (await client.wait(other)).json() == "instead"
        with pytest.raises(Refused) as refused:
            await client.amend(other, verifiers=client.pins("yes"))
        assert refused.value.code in (Code.VERSION_CONFLICT, Code.RUN_CLOSED)
        with pytest.raises(Refused) as refused:
            client.pins("no")
        assert refused.value.code == Code.VERIFIER_UNAVAILABLE


async def test_a_person_steers_from_a_client_and_sees_it_at_once(member: Member) -> None:
    async with member(), member(client=True) as client:
        run = await client.start([spec("waits", id="a"), spec("asks", id="b"), spec("waits", id="c", depends_on=["a"])])
        await client.pause(run, reason="lunch")
        assert (await client.result(run)).status == "paused"
        with pytest.raises(Refused) as refused:
            await client.pause(run)
        assert refused.value.code == Code.VERSION_CONFLICT
        await client.resume(run)
        assert (await client.result(run)).status == "running"
        await client.cancel_task(run, "c")
        assert (await client.result(run)).cancelled.keys() == {"c"}
        GATE.set()
        assert (await client.wait(run)).blocked == {"b": "worker_blocked"}
        await client.resolve(run, "b", note="we do")
        result = await client.wait(run)
        assert result.roots["b"].json() == "we do"


async def test_a_key_names_one_run_and_limits_grow(member: Member) -> None:
    async with member() as decider, member(client=True) as client:
        limits = Limits(max_tokens=1_000)
        run = await decider.start(spec("waits", id="a"), key="nightly", limits=limits)
        assert await client.start(spec("waits", id="a"), key="nightly", limits=Limits(max_tokens=2_000)) == run
        assert (await client.result(run)).limits.max_tokens == 2_000
        with pytest.raises(Refused) as refused:
            await client.start(spec("fails", id="a"), key="nightly")
        assert refused.value.code == Code.CONFIG_MISMATCH
        with pytest.raises(Refused) as refused:
            await client.set_limits(run, max_tokens=10)
        assert refused.value.code == Code.CONFIG_MISMATCH


async def test_what_a_branch_did_not_take_is_skipped_for_a_client_too(member: Member) -> None:
    GATE.set()
    async with member(), member(client=True) as client:
        taken = When("a", "ok", equals=True)
        result = await client.run([spec("waits", id="a"), spec("waits", id="b", depends_on=[taken])])
        assert result.counts == {"verified": 1, "skipped": 1}


async def test_an_answer_that_was_lost_comes_all_the_same(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    async with member() as decider, member(client=True) as client:
        run = await client.start(spec("waits"))
        queue = queue_of(decider)
        swallowed = asyncio.Event()
        sent = queue.reply

        def lose_one(address: str, replies: Sequence[Reply]) -> None:
            if address.startswith("client/") and not swallowed.is_set():
                swallowed.set()
            else:
                sent(address, replies)

        monkeypatch.setattr(queue, "reply", lose_one)
        assert (await client.pause(run)).events == ("RunPaused",)
        assert swallowed.is_set()


@pytest.mark.usefixtures("status_blocks")
async def test_waits_and_watchers_go_on_when_another_process_decides(member: Member) -> None:
    async with member(client=True) as client:
        async with member() as first:
            run = await client.start([spec("waits", id=f"t{n}") for n in range(3)])
            waiting = asyncio.create_task(client.wait(run))
            events = asyncio.create_task(seen(client, run))
            assert first.status(run) == "running"
        async with member():
            GATE.set()
            assert (await waiting).succeeded
            numbers = [event.seq for event in await events]
            assert numbers == list(range(1, len(numbers) + 1))


async def test_behind_the_block_every_call_says_that_it_is_closed(member: Member) -> None:
    async with member() as decider:
        run = await decider.start(spec("waits"))
        waiting = asyncio.create_task(decider.wait(run))
        await asyncio.sleep(0.05)
    with pytest.raises(InvalidInput, match="is closed"):
        await waiting
    for asked in (decider.result, decider.wait, decider.pause):
        with pytest.raises(InvalidInput, match="is closed"):
            await asked(run)
    with pytest.raises(InvalidInput, match="is closed"):
        await decider.start(spec("waits"))
