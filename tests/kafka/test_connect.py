"""`Dagbok.connect`: the methods of an embedded one on Apache Kafka, from several clients and without a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from dagbok import Code, Dagbok, Outcome, Refused, TaskContext, TaskSpec, worker
from dagbok.events.errors import InvalidInput
from dagbok.events.ids import run_id
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.listing import RunEvent
from tests.support.hosts import TIMEOUT_S, spec, yes

PARTITIONS = 2
SESSION_S = 1.5


@worker("echo", pure=True)
async def echo(task: TaskContext) -> Outcome:
    """Its own id."""
    return Outcome.candidate(task.task_id)


@worker("splits", pure=True)
async def splits(task: TaskContext) -> Outcome:
    """As many children as its goal says; then, how many it has read."""
    if task.phase == "integrate":
        return Outcome.candidate(len(task.dependencies))
    return Outcome.decompose([spec("echo", id=f"child-{number}") for number in range(int(task.goal))])


class Connect(Protocol):
    def __call__(
        self, *, serve: bool = True, schedule: bool = False, user: str = "local", database: str | None = None
    ) -> AbstractAsyncContextManager[Dagbok]: ...


@pytest.fixture
async def connect(settings: KafkaSettings, tmp_path: Path) -> Connect:
    """One of the clients of a log of the test's own."""
    await topics.create(settings, topics.declared(settings.prefix, PARTITIONS))

    def one(
        *, serve: bool = True, schedule: bool = False, user: str = "local", database: str | None = None
    ) -> AbstractAsyncContextManager[Dagbok]:
        return Dagbok.connect(
            yes,
            echo,
            splits,
            kafka=settings,
            artifacts=str(tmp_path),
            database=database,
            user=user,
            serve=serve,
            schedule=schedule,
            session_s=SESSION_S,
        )

    return one


@pytest.fixture(autouse=True)
async def _in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(2 * TIMEOUT_S):
        yield


async def seen(dagbok: Dagbok, run: str, after: int = 0) -> list[RunEvent]:
    """All events of a run."""
    return [event async for event in dagbok.events(run, after=after)]


async def test_a_run_is_started_worked_on_and_told_from_the_log_alone(connect: Connect) -> None:
    async with connect(schedule=True) as one, connect(serve=False, user="ann") as other:
        run = await other.start([spec("echo", id=f"t{number}") for number in range(20)])
        live = [asyncio.create_task(seen(dagbok, run)) for dagbok in (one, other)]
        result = await other.wait(run)
        assert (result.succeeded, result.counts) == (True, {"verified": 20})
        assert {root: found.json() for root, found in result.roots.items()} == {f"t{n}": f"t{n}" for n in range(20)}
        mine, theirs = await asyncio.gather(*live)
        assert mine == theirs
        assert [event.seq for event in mine] == list(range(1, result.last_event + 1))
        assert (mine[0].type, mine[-1].type, mine[0].actor) == ("RunStarted", "RunSucceeded", "user:ann")
        assert await seen(one, run, after=7) == mine[7:]
        assert await seen(one, run, after=len(mine)) == []
        assert (other.status(run), other.progress(run)) == ("succeeded", {"verified": 20})
        assert (await one.result(run)).last_event == result.last_event


async def test_a_run_that_was_looked_for_before_is_there_as_soon_as_its_start_was_answered(connect: Connect) -> None:
    async with connect(schedule=True), connect(serve=False) as other:
        for number in range(8):
            run = run_id("local", "default", f"run {number}")
            with pytest.raises(Refused) as none_yet:
                await other.result(run)
            assert none_yet.value.code == Code.NOT_FOUND
            assert await other.start([spec("nobody", id="one")], key=f"run {number}") == run
            assert sum(other.progress(run).values()) == 1


async def test_the_status_of_a_run_that_was_looked_at_reads_nothing(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect(schedule=True), connect(serve=False) as other:
        run = await other.start([spec("nobody", id="one")])
        await other.result(run)
        monkeypatch.setattr(LoopThread, "result", _refused)
        assert (other.status(run), sum(other.progress(run).values())) == ("running", 1)
        assert other.unserved(run) == []


def _refused(_thread: LoopThread, work: Coroutine[object, object, object]) -> object:
    work.close()
    raise AssertionError("the broker was asked")


async def test_a_task_reads_what_thousands_of_children_made(connect: Connect) -> None:
    """What it is handed then, and so is its verifier, is larger than a record may be."""
    async with connect(schedule=True) as dagbok:
        result = await dagbok.run(TaskSpec(id="root", goal="5000", worker="splits", verifier="yes"))
        assert (result.succeeded, result.counts) == (True, {"verified": 5_001})
        assert result.roots["root"].json() == 5_000


async def test_what_needs_tables_says_which_setting_names_them(connect: Connect) -> None:
    async with connect(serve=False) as dagbok:
        with pytest.raises(InvalidInput, match="DAGBOK_DATABASE") as refused:
            await dagbok.list_runs()
        assert refused.value.code == Code.USAGE


async def test_a_foreign_tenant_sees_nothing(connect: Connect) -> None:
    async with connect(schedule=True) as dagbok:
        run = await dagbok.start(spec("echo"), tenant="acme")
        with pytest.raises(Refused) as refused:
            await dagbok.wait(run, tenant="rival")
        assert refused.value.code == Code.NOT_FOUND
        assert dagbok.status(run, tenant="rival") is None
        with pytest.raises(Refused):
            await dagbok.cancel(run, tenant="rival")
