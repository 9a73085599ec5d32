"""Reading a log: what counts is returned, what is void is counted, and what is wrong stops the reader."""

from __future__ import annotations

import pytest

from dagbok.events.commit import SEAL_VERSION
from dagbok.events.errors import FormatTooNew, LogLost
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, Record
from dagbok.events.rule import GENESIS, Position
from dagbok.events.run.commands import PauseRun
from dagbok.projections.reading import Tally, check_head, read_effective
from dagbok.testing.make import start, task
from tests.support.logbuilder import LogBuilder
from tests.support.sealing import body, next_value

NOTHING = body(("CommandRefused", 1, '{"code":"not_found","reason":"none"}'))


def three_commits() -> LogBuilder:
    """Offsets 0, 1 and 2."""
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    builder.send("run-1", PauseRun())
    builder.send("run-1", PauseRun())
    return builder


async def test_a_read_gives_the_commits_behind_a_position_and_the_position_behind_them() -> None:
    builder = three_commits()
    log = await builder.log()
    position, commits = await read_effective(log, 0, GENESIS, 2)
    assert [commit.offset for commit in commits] == [0, 1]
    position, commits = await read_effective(log, 0, position, 2)
    assert [commit.offset for commit in commits] == [2]
    assert position == builder.state.position


async def test_at_the_end_the_position_stays() -> None:
    builder = three_commits()
    assert await read_effective(await builder.log(), 0, builder.state.position, 10) == (builder.state.position, [])


async def test_void_records_are_passed_and_counted() -> None:
    builder = three_commits()
    builder.void(builder.records[1].value)
    builder.void(b"no commit")
    tally = Tally()
    position, commits = await read_effective(await builder.log(), 0, GENESIS, 10, tally)
    assert len(commits) == 3
    assert tally == Tally(effective=3, void=2)
    assert position.next_offset == 5


async def test_a_read_of_void_records_only_still_moves_on() -> None:
    builder = three_commits()
    stood = builder.state.position
    builder.void(b"no commit")
    position, commits = await read_effective(await builder.log(), 0, stood, 10)
    assert commits == []
    assert position == stood.skip(3)


async def test_a_log_that_starts_beyond_the_position_is_lost() -> None:
    log = await three_commits().log()
    await log.delete_before(EVENTS, 0, 1)
    with pytest.raises(LogLost, match="starts at 1, the reader needs 0"):
        await read_effective(log, 0, GENESIS, 10)


async def test_a_log_that_ends_below_the_position_is_lost() -> None:
    with pytest.raises(LogLost, match="ends at 0, but was read up to 3"):
        await read_effective(MemoryLog(), 0, three_commits().state.position, 10)


async def test_what_stands_before_a_newer_seal_is_read_before_the_reader_halts() -> None:
    builder = three_commits()
    log = await builder.log()
    await log.append(EVENTS, 0, [Record("", next_value(builder, NOTHING, v=SEAL_VERSION + 1))])
    position, commits = await read_effective(log, 0, GENESIS, 10)
    assert len(commits) == 3
    with pytest.raises(FormatTooNew, match="0:3 has seal version"):
        await read_effective(log, 0, position, 10)


async def test_a_void_commit_of_a_newer_seal_halts_nobody() -> None:
    builder = three_commits()
    builder.void(next_value(builder, NOTHING, v=SEAL_VERSION + 1, after=0))
    position, commits = await read_effective(await builder.log(), 0, GENESIS, 10)
    assert (len(commits), position.next_offset) == (3, 4)


async def test_a_position_of_another_log_is_recognised() -> None:
    builder = three_commits()
    log = await builder.log()
    await check_head(log, 0, GENESIS)
    await check_head(log, 0, builder.state.position)
    foreign = Position(3, 2, "ab" * 32, 2)
    with pytest.raises(LogLost, match="another commit at offset 2"):
        await check_head(log, 0, foreign)
