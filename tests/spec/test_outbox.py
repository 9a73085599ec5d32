"""Commands on their way to the log: none is forgotten, whatever fails on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from dagbok.agents import patience
from dagbok.agents.workers import outbox as module
from dagbok.agents.workers.outbox import Outbox
from dagbok.events.codes import Code
from dagbok.events.commit import Seal, encode_value
from dagbok.events.envelope import REPLY_TO, Answer, Command, Sender, decode_command, run_command
from dagbok.events.errors import StorageFailed
from dagbok.events.ids import ZERO_HASH, partition_of
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS, Record, Topic
from dagbok.events.run.commands import PauseRun

SENDER = Sender("acme", "docs", "user:ann")
TIMEOUT_S = 10.0
REPEAT_S = 0.08


class FailingLog(MemoryLog):
    """Fails the first appends; every second one of them is written all the same."""

    def __init__(self, failures: int, partitions: int = 1) -> None:
        super().__init__(partitions)
        self.failures = failures

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        if not self.failures:
            return await super().append(topic, partition, records, expect=expect)
        self.failures -= 1
        if self.failures % 2:
            await super().append(topic, partition, records, expect=expect)
        raise StorageFailed("no")


def command(number: int, run: str = "r") -> Command:
    """A command with its number as id."""
    return run_command(SENDER, f"run:{run}", PauseRun(), id=str(number), now_ms=1)


def answer(number: int, *, retry: bool = False, code: str | None = None) -> Answer:
    """What became of it."""
    return Answer(id=str(number), accepted=not retry, at=(0, 0), retry=retry, code=code)


@asynccontextmanager
async def running(log: MemoryLog) -> AsyncIterator[Outbox]:
    """An outbox that repeats soon."""
    outbox = Outbox(log, "client/1", asyncio.get_running_loop().time, repeat_after_s=REPEAT_S)
    service = asyncio.create_task(outbox.run())
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield outbox
            assert not service.done()
    finally:
        service.cancel()
        await asyncio.gather(service, return_exceptions=True)


async def decide(log: MemoryLog, offset: int) -> None:
    """The owner has decided the commands up to `offset`: the last commit names it."""
    seal = Seal(
        actor="user:ann",
        after=-1,
        cause=None,
        codec="json",
        command_hash=ZERO_HASH,
        command_id="1",
        command_offset=offset,
        command_type="PauseRun",
        count=1,
        first_sent_ms=1,
        now_ms=1,
        partition=0,
        prev=ZERO_HASH,
        project="docs",
        raw_size=0,
        stream="run:r",
        stream_prev=ZERO_HASH,
        stream_seq=1,
        tenant="acme",
    )
    await log.append(EVENTS, 0, [Record("run:r", encode_value(seal, b""))])


async def ids(log: MemoryLog, count: int, partition: int = 0) -> list[str]:
    """The ids of the first `count` commands of a partition, as soon as they are there."""
    await log.wait(COMMANDS, partition, count - 1)
    return [decode_command(record.value).id for record in await log.read(COMMANDS, partition, 0, count)]


async def test_commands_are_appended_in_their_order_with_the_address_for_answers() -> None:
    log = MemoryLog()
    async with running(log) as outbox:
        for number in range(5):
            outbox.send(command(number))
        assert await ids(log, 5) == ["0", "1", "2", "3", "4"]
        assert (await log.read(COMMANDS, 0, 0, 1))[0].headers == {REPLY_TO: "client/1"}


async def test_each_command_goes_to_the_partition_of_its_stream() -> None:
    log = MemoryLog(partitions=3)
    async with running(log) as outbox:
        runs = [f"run-{number}" for number in range(12)]
        for number, run in enumerate(runs):
            outbox.send(command(number, run))
        for partition in range(3):
            wanted = [str(n) for n, run in enumerate(runs) if partition_of(f"run:{run}", 3) == partition]
            assert await ids(log, len(wanted), partition) == wanted


async def test_a_failing_append_is_tried_until_it_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_PAUSE_S", 0.001)
    log = FailingLog(failures=5)
    async with running(log) as outbox:
        outbox.send(command(1))
        while log.failures:  # noqa: ASYNC110 - each failure is an append of its own
            await asyncio.sleep(0.001)
        assert set(await ids(log, 3)) == {"1"}


async def test_what_has_no_answer_is_repeated_and_what_has_one_is_not() -> None:
    log = MemoryLog()
    async with running(log) as outbox:
        outbox.send(command(1))
        outbox.send(command(2))
        await ids(log, 2)
        await decide(log, 10**9)
        outbox.answered(answer(1))
        assert await ids(log, 4) == ["1", "2", "2", "2"]


async def test_what_has_no_answer_is_repeated_also_while_others_keep_coming() -> None:
    log = MemoryLog()
    async with running(log) as outbox:
        outbox.send(command(0))
        await decide(log, 10**9)
        number = 0
        while (await ids(log, max(1, (await log.bounds(COMMANDS, 0)).end))).count("0") < 2:
            number += 1
            outbox.send(command(number))
            outbox.answered(answer(number))
            await asyncio.sleep(REPEAT_S / 20)


async def test_an_answer_that_says_retry_ends_an_ask_and_not_what_insists() -> None:
    log = MemoryLog()
    heard: list[Answer] = []
    async with running(log) as outbox:
        outbox.send(command(1), heard.append)
        asking = asyncio.create_task(outbox.ask(command(2)))
        await ids(log, 2)
        await decide(log, 10**9)
        outbox.answered(answer(1, retry=True))
        outbox.answered(answer(2, retry=True))
        assert (await asking).retry
        assert await ids(log, 3) == ["1", "2", "1"]
        outbox.answered(answer(1))
        assert heard == [answer(1)]


async def test_settled_waits_for_the_last_answer_and_answers_count_once() -> None:
    log = MemoryLog()
    heard: list[Answer] = []
    async with running(log) as outbox:
        await outbox.settled()
        for number in (1, 2):
            outbox.send(command(number), heard.append)
        settled = asyncio.create_task(outbox.settled())
        await ids(log, 2)
        outbox.answered(answer(1))
        outbox.answered(answer(1))
        await asyncio.sleep(0)
        assert not settled.done()
        outbox.answered(answer(2))
        await settled
    assert heard == [answer(1), answer(2)]


async def repeats(log: MemoryLog, step_s: float, until_s: float) -> list[float]:
    """When a command that nobody answers is appended again, in seconds after it was sent."""
    now_s = 0.0
    outbox = Outbox(log, "client/1", lambda: now_s)
    service = asyncio.create_task(outbox.run())
    outbox.send(command(1))
    await ids(log, 1)
    times: list[float] = []
    while now_s < until_s:
        before = (await log.bounds(COMMANDS, 0)).end
        now_s += step_s
        await outbox.repeat()
        for _ in range(5):
            await asyncio.sleep(0)
        times += [now_s] * ((await log.bounds(COMMANDS, 0)).end - before)
    service.cancel()
    await asyncio.gather(service, return_exceptions=True)
    return times


async def test_what_is_not_decided_waits_long_before_it_is_repeated_since_its_owner_is_slow() -> None:
    assert await repeats(MemoryLog(), 10, 3_000) == [30, 90, 210, 450, 930, 1_530, 2_130, 2_730]


async def test_what_is_decided_and_not_answered_is_repeated_soon_and_later_each_time_up_to_ten_minutes() -> None:
    log = MemoryLog()
    await decide(log, 10**9)
    times = await repeats(log, 0.25, 3_000)
    assert times[:3] == [1.25, 3.25, 7.25]  # one look later than it is due: an answer may be on its way
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert max(pauses) == 600
    assert len(times) < 16


async def test_what_is_decided_meanwhile_is_repeated_only_when_a_second_look_finds_no_answer() -> None:
    log, now_s = MemoryLog(), 0.0
    outbox = Outbox(log, "client/1", lambda: now_s)
    service = asyncio.create_task(outbox.run())
    outbox.send(command(1))
    await ids(log, 1)
    now_s = 5.0
    await outbox.repeat()
    await decide(log, 0)
    await outbox.repeat()
    assert await ids(log, (await log.bounds(COMMANDS, 0)).end) == ["1"]
    await outbox.repeat()
    assert await ids(log, 2) == ["1", "1"]
    service.cancel()
    await asyncio.gather(service, return_exceptions=True)


async def test_a_log_that_cannot_be_written_for_long_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_PAUSE_S", 0.001)
    monkeypatch.setattr(patience, "LONGEST_S", 0.05)
    outbox = Outbox(FailingLog(failures=10**9), "client/1", asyncio.get_running_loop().time)
    outbox.send(command(1))
    with pytest.raises(StorageFailed):
        async with asyncio.timeout(TIMEOUT_S):
            await outbox.run()


async def test_a_command_that_the_scheduler_breaks_on_is_given_up_at_the_third_time() -> None:
    log = MemoryLog()
    heard: list[Answer] = []
    broken = answer(1, retry=True, code=Code.INTERNAL_ERROR)
    async with running(log) as outbox:
        outbox.send(command(1), heard.append)
        outbox.answered(broken)
        outbox.answered(answer(1, retry=True, code=Code.UNSUPPORTED))
        outbox.answered(broken)
        assert heard == []
        outbox.answered(broken)
        assert heard == [broken]
        await outbox.settled()
