"""Rows and position move together or not at all, whatever happens in between, and whoever else is projecting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from dagbok.events.rule import GENESIS
from dagbok.projections.projector import Projector, rebuild
from dagbok.projections.queries import Queries
from dagbok.projections.tables.session import Session
from dagbok.projections.views.journal import JournalView
from dagbok.projections.views.view import Told
from tests.support.histories import random_history
from tests.support.places import Place
from tests.support.projecting import dump, project
from tests.support.views import views_with


class Broken(Exception):
    """What a test makes happen."""


class BreakingJournal(JournalView):
    """Writes its rows, then fails at one batch; it comes last, so that all others have written."""

    def __init__(self, batch: int) -> None:
        self._left = batch

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        super().write(session, batch)
        self._left -= 1
        if self._left == 0:
            raise Broken


class TellingJournal(JournalView):
    """Says when it has written a batch, inside the transaction."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.wrote = asyncio.Event()

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        super().write(session, batch)
        self.loop.call_soon_threadsafe(self.wrote.set)


@pytest.mark.parametrize("batch", [1, 2, 4])
async def test_a_batch_that_fails_leaves_rows_and_position_as_they_were(
    place: Place, tmp_path: Path, batch: int
) -> None:
    history = random_history(seed=1, steps=60)
    log = await history.log()
    tables = place.open(views=views_with(BreakingJournal(batch)))
    projector = Projector(log, tables, batch_records=10)
    with pytest.raises(Broken):
        await projector.catch_up()
    assert Queries(tables).position().next_offset == (batch - 1) * 10
    shorter = random_history(seed=1, steps=0)
    shorter.records = history.records[: (batch - 1) * 10]
    assert dump(tables) == await project(await shorter.log(), tmp_path / "shorter.db")
    await projector.catch_up()
    assert dump(tables) == await project(log, tmp_path / "whole.db")
    tables.close()


async def test_projectors_at_once_write_every_event_once(place: Place) -> None:
    history = random_history(seed=2, steps=300)
    log = await history.log()
    stores = [place.open() for _ in range(3)]
    projectors = [Projector(log, tables, batch_records=size) for tables, size in zip(stores, (3, 5, 7), strict=True)]
    await asyncio.gather(*(projector.catch_up() for projector in projectors))
    whole = place.open("whole")
    alone = Projector(log, whole)
    await alone.catch_up()
    assert sum(projector.progress.commits for projector in projectors) == alone.progress.commits
    assert dump(stores[0]) == dump(whole)
    assert Queries(stores[0]).void_records() == Queries(whole).void_records() > 0
    for tables in (*stores, whole):
        tables.close()


async def test_a_rebuild_and_a_live_projector_do_not_disturb_each_other(place: Place, tmp_path: Path) -> None:
    history = random_history(seed=3, steps=200)
    log = await history.log()
    live, other = place.open(), place.open()
    await asyncio.gather(
        Projector(log, live, batch_records=5).catch_up(),
        rebuild(log, other, batch_records=7),
        rebuild(log, other, ["graph"], batch_records=3),
    )
    await Projector(log, live).catch_up()
    assert dump(live) == await project(log, tmp_path / "whole.db")
    live.close()
    other.close()


async def test_a_rebuild_that_fails_leaves_the_live_tables_and_nothing_else(place: Place, tmp_path: Path) -> None:
    history = random_history(seed=4, steps=40)
    log = await history.log()
    tables = place.open(views=views_with(BreakingJournal(6)))
    projector = Projector(log, tables, batch_records=10)
    await projector.catch_up()
    before = dump(tables)
    with pytest.raises(Broken):
        await rebuild(log, tables, batch_records=10)
    assert dump(tables) == before == await project(log, tmp_path / "whole.db")
    await rebuild(log, tables)
    assert dump(tables) == before
    tables.close()


async def test_who_is_cancelled_finishes_the_batch_and_begins_no_other(place: Place) -> None:
    history = random_history(seed=5, steps=60)
    journal = TellingJournal()
    tables = place.open(views=views_with(journal))
    projector = Projector(await history.log(), tables, batch_records=20)
    running = asyncio.create_task(projector.run())
    await journal.wrote.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert Queries(tables).position().next_offset == 20
    tables.close()


async def test_a_projector_that_follows_takes_in_what_is_appended(place: Place, tmp_path: Path) -> None:
    history = random_history(seed=6, steps=60)
    records, history.records = history.records, history.records[:30]
    log = await history.log()
    journal = TellingJournal()
    tables = place.open(views=views_with(journal))
    projector = Projector(log, tables)
    running = asyncio.create_task(projector.run())
    for end in (40, 60):
        await journal.wrote.wait()
        journal.wrote.clear()
        history.records = records[:end]
        await history.append_to(log, (await log.bounds("events", 0)).end)
    await journal.wrote.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await projector.catch_up()
    assert projector.progress.commits + projector.progress.void == len(records)
    assert dump(tables) == await project(log, tmp_path / "whole.db")
    tables.close()


async def test_a_projector_begins_where_the_tables_stand(place: Place) -> None:
    history = random_history(seed=7, steps=60)
    log = await history.log()
    tables = place.open()
    assert Projector(log, tables).position == GENESIS
    await Projector(log, tables).catch_up()
    again = Projector(log, tables)
    assert await again.catch_up() == history.state.position
    assert again.progress.commits == 0
    tables.close()
