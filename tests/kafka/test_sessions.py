"""Sessions of tasks, on a data folder and on Apache Kafka: a process that only asks sees every turn and forks them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from dagbok import Code, Dagbok, Outcome, Refused, TaskContext, TaskSpec, worker
from dagbok.agents.hosting.embedded import Own
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.kafka_settings import KafkaSettings
from tests.support.hosts import TIMEOUT_S, yes


@worker("talks")
async def talks(task: TaskContext) -> Outcome:
    """One line a turn, some of them large."""
    lines = task.session.load() or []
    for number in range(3):
        lines.append(f"{task.inputs} {number} " + "x" * (50_000 if number == 1 else 0))
        await task.session.save(lines)
    return Outcome.candidate(len(lines))


def talk(inputs: str, **more: object) -> TaskSpec:
    written = {"id": "talk", "goal": "talk", "worker": "talks", "verifier": "yes", "inputs": inputs}
    return TaskSpec.model_validate(written | more)


class Join(Protocol):
    """A process that works and decides, or one that only asks."""

    def __call__(self, *, client: bool = False) -> AbstractAsyncContextManager[Dagbok]: ...


@pytest.fixture(params=["folder", "kafka"])
async def join(request: pytest.FixtureRequest, tmp_path: Path) -> Join:
    """One of the processes on one log."""
    if request.param == "folder":

        def embedded(*, client: bool = False) -> AbstractAsyncContextManager[Dagbok]:
            own: Own = "never" if client else "auto"
            return Dagbok.embedded(tmp_path, yes, talks, own=own, serve=not client, projector="none")

        return embedded
    kafka: KafkaSettings = request.getfixturevalue("settings")
    await topics.create(kafka, topics.declared(kafka.prefix, 2))

    def connected(*, client: bool = False) -> AbstractAsyncContextManager[Dagbok]:
        runs = not client
        return Dagbok.connect(yes, talks, kafka=kafka, artifacts=str(tmp_path), serve=runs, schedule=runs)

    return connected


@pytest.fixture(autouse=True)
async def _in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(2 * TIMEOUT_S):
        yield


async def test_who_only_asks_sees_every_turn_and_another_run_goes_on_from_one(join: Join) -> None:
    async with join(), join(client=True) as client:
        run = (await client.run(talk("first"))).run
        last, second = await client.session(run, "talk"), await client.session(run, "talk", turn=2)
        assert (last.turn, last.turns) == (3, [1, 2, 3])
        assert [line[:8] for line in last.value] == ["first 0 ", "first 1 ", "first 2 "]
        assert (second.value, second.turn) == (last.value[:2], 2)
        assert len(second.value[1]) > 50_000
        put_down = [each.seq async for each in client.events(run) if each.type == "SessionSuspended"]
        until = await client.session(run, "talk", event=put_down[2] - 1)
        assert (until.value, until.turns) == (second.value, [1, 2])

        other = (await client.run(talk("other", session=await client.fork(run, "talk", turn=1)))).run
        assert [line[:8] for line in (await client.session(other, "talk")).value] == [
            *("first 0 ", "other 0 ", "other 1 ", "other 2 ")
        ]
        assert (await client.session(run, "talk")).value == last.value
        with pytest.raises(Refused) as missing:
            await client.session(run, "talk", turn=9)
        assert missing.value.code is Code.NOT_FOUND
