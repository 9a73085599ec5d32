"""A pool that can have no topics on Kafka: refused where it is named, and harmless where another program named it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from dagbok import Code, Dagbok, Outcome, Refused, TaskContext, worker
from dagbok.events.envelope import Sender, run_command
from dagbok.events.errors import InvalidInput
from dagbok.events.ids import run_id, run_stream
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.run.values import Pinned
from dagbok.starting import start_command
from tests.support.hosts import TIMEOUT_S, spec, yes

ILLEGAL = "gpus/of ann"
CHARACTERS = r"A-Z a-z 0-9 \. _ -"


@worker("echo", pure=True)
async def echo(task: TaskContext) -> Outcome:
    """Its own id."""
    return Outcome.candidate(task.task_id)


class Connect(Protocol):
    def __call__(
        self, *, pool: str = "default", serve: bool = True, schedule: bool = False
    ) -> AbstractAsyncContextManager[Dagbok]: ...


@pytest.fixture
async def connect(settings: KafkaSettings, tmp_path: Path) -> Connect:
    """A client of a log of the test's own."""
    await topics.create(settings, topics.declared(settings.prefix, 1))
    return partial(Dagbok.connect, yes, echo, kafka=settings, artifacts=str(tmp_path), session_s=1.5)


@pytest.fixture(autouse=True)
async def _in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(TIMEOUT_S):
        yield


async def test_a_run_with_a_task_in_it_does_not_start(connect: Connect) -> None:
    async with connect(serve=False) as client:
        with pytest.raises(InvalidInput, match=CHARACTERS) as refused:
            await client.start([spec("echo", id="a"), spec("echo", id="b", pool=ILLEGAL)], key="k")
        assert refused.value.code is Code.INVALID_SPEC
        with pytest.raises(Refused) as none_there:
            await client.result(run_id("local", "default", "k"))
        assert none_there.value.code is Code.NOT_FOUND


async def test_nobody_can_join_for_it(connect: Connect) -> None:
    with pytest.raises(InvalidInput, match=CHARACTERS) as refused:
        async with connect(pool=ILLEGAL):
            raise AssertionError("it was let in")
    assert refused.value.code is Code.USAGE


async def test_the_tasks_of_another_program_hold_up_no_others_until_a_person_puts_one_in_their_place(
    connect: Connect,
) -> None:
    async with connect(schedule=True) as client:
        run = run_id("local", "default", "k")
        tasks = [spec("echo", id="stuck", pool=ILLEGAL), *[spec("echo", id=f"t{number}") for number in range(3)]]
        command = start_command(run, tasks, Pinned(dict(client.pins())), pool="default", user="ann")
        sender = Sender("local", "default", "user:ann")
        envelope = run_command(sender, run_stream(run), command, id="start", now_ms=system_ms())
        assert (await client.kafka_host.ask(envelope)).accepted
        verified = 0
        async for event in client.events(run):
            verified += event.type == "TaskVerified"
            if verified == 3:
                break
        assert (await client.result(run)).status == "running"
        with pytest.raises(InvalidInput, match=CHARACTERS):
            await client.supersede(run, "stuck", spec("echo", id="again", pool=ILLEGAL))
        await client.supersede(run, "stuck", spec("echo", id="instead"))
        assert (await client.wait(run)).succeeded


async def test_a_folder_takes_any_name(tmp_path: Path) -> None:
    async with Dagbok.embedded(tmp_path, yes, echo, pool=ILLEGAL, projector="none") as folder:
        assert (await folder.run([spec("echo", id="a"), spec("echo", id="b", pool=ILLEGAL)])).succeeded
