"""Several projectors, rebuilds and readers on the same tables at once: nobody sees half of anything."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from dagbok.events.errors import FormatTooNew, StorageFailed
from dagbok.events.ids import partition_of, run_stream
from dagbok.events.log.memory import MemoryLog
from dagbok.events.rule import GENESIS
from dagbok.events.run.commands import CancelRun
from dagbok.projections import projector
from dagbok.projections.feed import Feed
from dagbok.projections.projector import Projector, rebuild
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables
from dagbok.projections.tables import positions
from dagbok.projections.views.graph import GraphView
from dagbok.projections.views.journal import JournalView
from dagbok.projections.views.reports import ReportsView
from dagbok.testing import act
from dagbok.testing.make import candidate, start, task
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.places import Place, PostgresPlace
from tests.support.projecting import dump, project


class NewerGraph(GraphView):
    """The graph as a later dagbok lays it out."""

    layout = GraphView.layout + 1  # type: ignore[misc]


async def test_a_projector_whose_position_is_old_writes_nothing_and_reads_it_anew(place: Place, tmp_path: Path) -> None:
    log = await random_history(seed=1, steps=60).log()
    fast, slow = Feed(log, place.open(), 0, 10), Feed(log, place.open(), 0, 15)
    assert await fast.step()
    assert await slow.step()  # both stand at 10 and 25 now, and the fast one does not know
    assert await fast.step()
    assert fast.progress.lost == 1
    assert (fast.progress.commits, Queries(place.open()).position().next_offset) == (10 - fast.progress.void, 25)
    while await fast.step():
        pass
    assert dump(place.open()) == await project(log, tmp_path / "whole.db")


def test_a_position_moves_on_only_from_where_it_stands(place: Place) -> None:
    tables = place.open()
    one = GENESIS.skip(0)
    with tables.writing() as connection:
        positions.begin(connection, "graph", 7, 0)
        positions.begin(connection, "graph", 7, 0)  # another process was faster: the same
        assert positions.advance(connection, "graph", 7, 0, GENESIS, one, 1)
        assert not positions.advance(connection, "graph", 7, 0, GENESIS, one, 1)
        assert not positions.advance(connection, "graph", 7, 1, GENESIS, one, 1)
        assert positions.read_position(connection, "graph", 7, 0) == one


async def test_projectors_of_all_partitions_write_the_same_tables_at_once(place: Place) -> None:
    log = MemoryLog(partitions=3)
    for partition in range(3):
        await _history_of(partition, 3).append_to(log)
    tables = [place.open() for _ in range(6)]
    at_once = [Projector(log, one, number % 3, batch_records=5) for number, one in enumerate(tables)]
    await asyncio.gather(*[projector.catch_up() for projector in at_once])
    alone = place.open("alone")
    for partition in range(3):
        await Projector(log, alone, partition).catch_up()
    assert dump(tables[0]) == dump(alone)
    assert len(Queries(alone).list_runs("acme", "docs", limit=100)) == 3 * RUNS


def test_processes_that_make_the_tables_at_once_all_find_them(place: Place) -> None:
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: place.open(), range(8)))
    names = place.table_names(opened[0])
    assert {"views", "positions", "runs", "journal"} <= set(names)
    assert all(not tables.outdated() for tables in opened)


async def test_who_reads_while_versions_are_swapped_sees_all_rows_or_all_rows(place: Place) -> None:
    log = await random_history(seed=2, steps=120).log()
    tables, builder = place.open(), place.open()
    await Projector(log, tables).catch_up()
    whole = dump(tables)
    done = asyncio.Event()

    async def read() -> int:
        times = 0
        while not done.is_set():
            assert await asyncio.to_thread(dump, tables) == whole
            times += 1
        return times

    readers = [asyncio.create_task(read()) for _ in range(3)]
    for _ in range(4):
        await rebuild(log, builder, batch_records=25)
    done.set()
    assert min(await asyncio.gather(*readers)) > 0


async def test_of_many_projectors_that_find_tables_of_an_older_layout_one_builds_them(
    in_postgres: PostgresPlace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = MemoryLog(partitions=3)
    for partition in range(3):
        await _history_of(partition, 3).append_to(log)
        await Projector(log, in_postgres.open(), partition).catch_up()
    began, begin = list[str](), Tables.begin_version

    def begin_version(self: Tables, name: str, partitions: int) -> int:
        began.append(name)
        return begin(self, name, partitions)

    monkeypatch.setattr(Tables, "begin_version", begin_version)
    monkeypatch.setattr(projector, "REBUILT_S", 0.01)
    newer = [in_postgres.open(views=(NewerGraph(), ReportsView(), JournalView())) for _ in range(6)]
    await asyncio.gather(*[Projector(log, one, number % 3).catch_up() for number, one in enumerate(newer)])
    assert began == ["graph"]
    assert len(Queries(newer[0]).list_runs("acme", "docs", limit=100)) == 3 * RUNS


async def test_who_rebuilds_and_dies_is_followed_by_another_one(in_postgres: PostgresPlace) -> None:
    one, other = in_postgres.open(), in_postgres.open()
    leave = one.try_alone()
    assert leave is not None
    assert other.try_alone() is None
    leave()
    again = other.try_alone()
    assert again is not None
    await in_postgres.end_connections()
    last = one.try_alone()
    assert last is not None
    again()  # its connection is gone, which is no error
    assert other.try_alone() is None
    last()


async def test_a_rebuild_waits_for_who_reads_and_does_not_wait_for_ever(in_postgres: PostgresPlace) -> None:
    log = await random_history(seed=3, steps=40).log()
    tables, impatient = in_postgres.open(), in_postgres.open(busy_timeout_s=0.5)
    await Projector(log, tables).catch_up()
    before = dump(tables)
    with tables.reading() as connection:
        tables.live(connection, "graph")
        with pytest.raises(StorageFailed, match="lock timeout") as busy:
            await rebuild(log, impatient)
    assert (busy.value.retry, "pg_stat_activity" in busy.value.advice) == (True, True)
    assert dump(tables) == before
    await rebuild(log, impatient)
    assert dump(tables) == before


async def test_a_version_is_not_swapped_while_the_live_one_gets_ahead_of_it(in_postgres: PostgresPlace) -> None:
    log = await random_history(seed=3, steps=40).log()
    live, builder = in_postgres.open(), in_postgres.open()
    await Projector(log, live).catch_up()
    version = builder.begin_version("graph", 1)
    feed = Feed(log, builder, 0, 100, {"graph": version})
    assert await feed.step()
    with _in_the_midst_of_a_batch(live, commits=True):
        swapping = asyncio.create_task(asyncio.to_thread(builder.swap, "graph", version, [feed.position]))
        await in_postgres.somebody_waits()
    assert not await swapping
    assert Queries(live).position(0).next_offset == 40


async def test_who_reads_while_a_newer_dagbok_swaps_does_not_take_its_tables_for_the_older_ones(
    in_postgres: PostgresPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await random_history(seed=3, steps=40).log()
    older, newer = in_postgres.open(), in_postgres.open(views=(NewerGraph(), ReportsView(), JournalView()))
    await Projector(log, older).catch_up()
    entered, leave, lock = threading.Event(), threading.Event(), positions.lock

    def slow_lock(connection: sa.Connection, view: str) -> None:
        entered.set()
        leave.wait()
        lock(connection, view)

    monkeypatch.setattr(positions, "lock", slow_lock)
    building = asyncio.create_task(rebuild(log, newer, ["graph"]))
    await asyncio.to_thread(entered.wait)
    asking = asyncio.create_task(asyncio.to_thread(Queries(older).list_runs, "acme", "docs"))
    await in_postgres.somebody_waits()
    leave.set()
    await building
    with pytest.raises(FormatTooNew):
        await asking


async def test_a_projector_that_waits_too_long_for_another_one_says_so(in_postgres: Place) -> None:
    log = await random_history(seed=3, steps=40).log()
    tables, impatient = in_postgres.open(), in_postgres.open(busy_timeout_s=0.5)
    feed = Feed(log, impatient, 0, 10)
    await feed.step()
    with _in_the_midst_of_a_batch(tables):
        with pytest.raises(StorageFailed, match="lock timeout"):
            await feed.step()
        assert Queries(impatient).position().next_offset == 10  # reading goes on
    while await feed.step():
        pass
    assert Queries(tables).position().next_offset == 40


@contextmanager
def _in_the_midst_of_a_batch(tables: Tables, *, commits: bool = False) -> Iterator[None]:
    with tables.writing() as connection:
        stood = positions.read_position(connection, "graph", 1, 0)
        assert stood is not None
        assert positions.advance(connection, "graph", 1, 0, stood, stood.skip(stood.next_offset), 1)
        yield
        if not commits:
            connection.rollback()


RUNS = 6


def _history_of(partition: int, partitions: int) -> LogBuilder:
    """Runs that live on this partition."""
    builder = LogBuilder(partition, partitions)
    names = (
        name for name in map("run-{}".format, range(1_000)) if partition_of(run_stream(name), partitions) == partition
    )
    for name, _ in zip(names, range(RUNS), strict=False):
        builder.send(name, start(task("root"), task("other")))
        builder.send(name, act.submit_outcome(builder.run(name), "root", candidate(name)))
        builder.send(name, act.submit_verdict(builder.run(name), "root", "pass"))
        builder.send(name, CancelRun())
    return builder
