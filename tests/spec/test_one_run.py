"""One run out of a partition: folded from snapshot and log, followed, and its history read, whatever log it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dagbok.agents.hosting import tail as tails
from dagbok.agents.hosting.history import LogHistory
from dagbok.agents.hosting.one_run import Source, fold_run, position_before
from dagbok.agents.hosting.tail import Tail
from dagbok.agents.hosting.watching import Committed, Watchers
from dagbok.events.codes import Code
from dagbok.events.errors import LogCorrupt, LogError, LogLost
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, StoredRecord, Topic
from dagbok.events.rule import GENESIS
from dagbok.events.run.commands import PauseRun, ResumeRun
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.snapshots.slots import FileSlots
from dagbok.projections.task_graph.state import RunState
from dagbok.testing.make import start, task
from tests.spec.test_snapshot_index import Story, close_run
from tests.support.logbuilder import LogBuilder
from tests.support.snapshotting import fold, keeper_in


class Holed(MemoryLog):
    """A log whose offsets are not dense: what is in `holes` is no record for readers. It can be away."""

    def __init__(self, holes: Sequence[int] = ()) -> None:
        super().__init__()
        self._holes = holes
        self.away = False

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        return self.read_now(topic, partition, start, limit)

    def read_now(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        if self.away:
            raise LogError("nobody answers", code=Code.LOG_UNREACHABLE)
        found = super().read_now(topic, partition, start, limit + len(self._holes))
        return [record for record in found if record.offset not in self._holes][:limit]


def source_of(log: MemoryLog, folder: Path, *, log_refuses: bool = False) -> Source:
    """Of the only partition, with snapshots in `folder`."""
    folder.mkdir(exist_ok=True)
    return Source(log, 0, FileSlots(folder, 0), local_store(folder).within(SNAPSHOT_CHUNKS), log_refuses)


def with_voids() -> LogBuilder:
    """Two runs, with records between them that do not count."""
    builder = LogBuilder()
    builder.send("a", start(task("only")))
    builder.void(b"no commit at all")
    builder.send("b", start(task("only")))
    builder.void(builder.records[0].value)
    builder.send("a", PauseRun())
    return builder


async def numbers(history: LogHistory) -> list[int]:
    """The numbers of the events that it gives."""
    found: list[Committed] = []
    while some := await history.more():
        found += some
    return [item.seal.stream_seq + index for item in found for index in range(item.seal.count)]


async def test_what_does_not_count_is_skipped_where_a_log_cannot_refuse(tmp_path: Path) -> None:
    builder = with_voids()
    state = fold_run(source_of(await builder.log(), tmp_path), "run:a")
    assert state.runs == {"run:a": builder.run("a")}
    assert state.position == builder.state.position


async def test_what_does_not_count_is_damage_where_a_log_refuses(tmp_path: Path) -> None:
    log = await with_voids().log()
    with pytest.raises(LogCorrupt, match="was altered"):
        fold_run(source_of(log, tmp_path, log_refuses=True), "run:a")


async def test_a_hole_is_no_loss_where_offsets_need_not_be_dense(tmp_path: Path) -> None:
    builder, log = with_voids(), Holed(holes=(1,))
    await builder.append_to(log)
    assert fold_run(source_of(log, tmp_path / "a"), "run:a").runs == {"run:a": builder.run("a")}
    with pytest.raises(LogLost, match="no record at offset 1"):
        fold_run(source_of(log, tmp_path / "b", log_refuses=True), "run:a")


async def test_a_log_that_begins_later_than_it_was_read_has_lost_records(tmp_path: Path) -> None:
    log = await with_voids().log()
    await log.delete_before(EVENTS, 0, 2)
    with pytest.raises(LogLost, match="no record at offset 0"):
        fold_run(source_of(log, tmp_path), "run:a")


async def test_a_run_that_is_closed_for_long_is_found_in_the_snapshot(tmp_path: Path) -> None:
    story = Story(tmp_path)
    close_run(story.builder, "old")
    for _ in range(3):
        await story.go_on()
    assert "run:old" in story.keeper.cold
    source = source_of(story.log, tmp_path, log_refuses=True)
    found = fold_run(source, "run:old").runs["run:old"]
    assert (found.status, found.stream_seq) == ("succeeded", story.builder.run("old").stream_seq)


async def test_a_history_has_each_event_once_and_in_order(tmp_path: Path) -> None:
    builder = with_voids()
    source = source_of(await builder.log(), tmp_path)
    last = builder.run("a").stream_seq
    assert await numbers(LogHistory(source, "run:a", 0)) == list(range(1, last + 1))
    # The commit that has the first of them comes whole.
    assert (await numbers(LogHistory(source, "run:a", last - 1)))[-1] == last
    assert await numbers(LogHistory(source, "run:a", last)) == []


async def test_a_history_begins_at_a_snapshot_that_has_all_before_it(tmp_path: Path) -> None:
    builder = with_voids()
    log = await builder.log()
    await fold(log, keeper_in(tmp_path, log))
    source, seen = source_of(log, tmp_path), builder.run("a").stream_seq
    assert position_before(source, "run:a", seen).next_offset > 0
    assert position_before(source, "run:a", 0) == GENESIS
    builder.send("a", ResumeRun())
    await builder.append_to(log, (await log.bounds(EVENTS, 0)).end)
    assert await numbers(LogHistory(source, "run:a", seen)) == list(range(seen + 1, builder.run("a").stream_seq + 1))


async def test_who_looks_while_the_log_is_away_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "RETRY_PAUSE_S", 0.01)
    builder, log = with_voids(), Holed()
    await builder.append_to(log)
    tail = Tail(source_of(log, tmp_path), Watchers(), time.monotonic, reads_cheaply=False)
    log.away = True
    looking = asyncio.create_task(tail.found("run:a"))
    assert not (await asyncio.wait((looking,), timeout=0.1))[0]
    log.away = False
    async with asyncio.timeout(5):
        assert await looking == builder.run("a")


async def test_a_tail_tells_watchers_of_every_commit_over_an_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "RETRY_PAUSE_S", 0.01)
    builder, log, watchers, told = with_voids(), Holed(), Watchers(), list[int]()
    await builder.append_to(log)
    tail = Tail(source_of(log, tmp_path), watchers, time.monotonic, reads_cheaply=False)

    def note(run: RunState, committed: Sequence[Committed]) -> None:
        told.extend(item.offset for item in committed)

    watchers.add("run:a", note)
    following = asyncio.create_task(tail.run())
    await tail.found("run:a")
    log.away = True
    first = len(builder.records)
    for command in (ResumeRun(), PauseRun(), ResumeRun()):
        builder.send("a", command)
        builder.void(b"late")
    await builder.append_to(log, first)
    await asyncio.sleep(0.05)
    assert told == []
    log.away = False
    async with asyncio.timeout(5):
        while len(told) < 3:  # noqa: ASYNC110 - the watcher is told outside of any lock
            await asyncio.sleep(0.01)
    assert told == [first, first + 2, first + 4]
    assert tail.find("run:a") == builder.run("a")
    following.cancel()
    await asyncio.wait((following,))
