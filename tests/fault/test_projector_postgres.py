"""What PostgreSQL may do in the midst of a batch: die, come back, end the connection, lose the word that it committed.
Nothing is lost and nothing comes twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from dagbok.events.errors import StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, Record
from dagbok.projections.patience import patiently
from dagbok.projections.projector import Projector, rebuild
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables
from dagbok.projections.tables import positions, postgres
from dagbok.projections.tables.session import Session
from dagbok.projections.views.journal import JournalView
from dagbok.projections.views.view import Told
from tests.servers.postgres import ADVICE
from tests.servers.postgres_system import SystemPostgres, find_programs
from tests.support.histories import random_history
from tests.support.places import PostgresPlace
from tests.support.projecting import dump, project
from tests.support.scale import scale
from tests.support.views import views_with

STEPS = 120
BATCH = 10


class Disturbed(JournalView):
    """Writes its rows, last of all views; then something happens, when it is due."""

    def __init__(self, happens: Callable[[Session], None], *batches: int) -> None:
        self._happens = happens
        self._batches = set(batches)
        self._number = 0

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        super().write(session, batch)
        self._number += 1
        if self._number in self._batches:
            self._happens(session)


def end_connection(session: Session) -> None:
    """As an administrator ends a connection, or a failing network."""
    pid = session.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    with session.connection.engine.connect() as other:
        other.exec_driver_sql("SELECT pg_terminate_backend(%s, 5000)", (pid,))


@pytest.fixture(scope="module")
def server() -> Iterator[SystemPostgres]:
    """One that a test may kill, which no other test uses; it runs again when the test ends."""
    programs = find_programs()
    assert programs is not None, f"a server that can be killed is needed here. {ADVICE}"
    with SystemPostgres(programs) as running:
        yield running


async def test_a_connection_that_ends_in_the_midst_leaves_nothing_of_the_batch(
    in_postgres: PostgresPlace, tmp_path: Path
) -> None:
    log = await random_history(seed=1, steps=STEPS).log()
    tables = in_postgres.open(views=views_with(Disturbed(end_connection, 3)))
    projector = Projector(log, tables, batch_records=BATCH)
    with pytest.raises(StorageFailed, match="terminating connection") as lost:
        await projector.catch_up()
    assert (lost.value.retry, "start the database" in lost.value.advice) == (True, True)
    assert Queries(tables).position().next_offset == 2 * BATCH
    await projector.catch_up()
    assert dump(tables) == await project(log, tmp_path / "whole.db")


async def test_who_did_not_hear_that_a_batch_was_committed_does_not_write_it_again(
    in_postgres: PostgresPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await random_history(seed=1, steps=STEPS).log()
    tables = in_postgres.open()
    projector = Projector(log, tables, batch_records=BATCH)
    writing, number = Tables.writing, 0

    @contextmanager
    def deaf(self: Tables) -> Iterator[object]:
        nonlocal number
        with writing(self) as connection:
            yield connection
        number += 1
        if number in (3, 6):
            raise StorageFailed("the connection was lost during COMMIT")

    monkeypatch.setattr(Tables, "writing", deaf)
    for _ in range(2):
        with pytest.raises(StorageFailed, match="during COMMIT"):
            await projector.catch_up()
    await projector.catch_up()
    assert projector.progress.lost == 2
    assert dump(tables) == await project(log, tmp_path / "whole.db")


async def test_a_server_that_is_killed_in_the_midst_and_starts_again_has_lost_nothing(
    server: SystemPostgres, tmp_path: Path
) -> None:
    log = await random_history(seed=2, steps=STEPS).log()
    journal = Disturbed(lambda _: server.kill(), 4)
    tables = Tables.connect(server.url, views_with(journal), schema="killed")
    projector = Projector(log, tables, batch_records=BATCH)
    with pytest.raises(StorageFailed) as lost:
        await projector.catch_up()
    with pytest.raises(StorageFailed, match="start the database"):
        Queries(tables).position()
    assert lost.value.retry
    server.start()
    assert Queries(tables).position().next_offset == 3 * BATCH
    await projector.catch_up()
    assert dump(tables) == await project(log, tmp_path / "whole.db")
    tables.close()


async def test_projectors_that_follow_wait_for_the_server_and_go_on(server: SystemPostgres, tmp_path: Path) -> None:
    rounds = scale(3, 50)
    history = random_history(seed=3, steps=40 * rounds)
    records = history.records
    log, told = MemoryLog(), asyncio.Queue[str]()
    tables = [Tables.connect(server.url, schema="followed") for _ in range(2)]
    following = [
        asyncio.create_task(
            patiently(
                Projector(log, one, batch_records=3).run,
                lambda error, _: told.put_nowait(error.advice),
                first_delay_s=0.05,
                longest_delay_s=0.2,
            )
        )
        for one in tables
    ]
    for number in range(rounds):
        await _append(log, records[40 * number : 40 * number + 30])
        await asyncio.to_thread(server.kill if number % 2 else server.stop)
        while not told.empty():
            told.get_nowait()
        last = number == rounds - 1
        await _append(log, records[40 * number + 30 : None if last else 40 * number + 40])
        assert "start the database" in await told.get()
        await asyncio.to_thread(server.start)
    while (await asyncio.to_thread(Queries(tables[0]).position)).next_offset < len(records):
        await log.wait(EVENTS, 0, len(records) - 1)
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    assert dump(tables[1]) == await project(log, tmp_path / "whole.db")
    for one in tables:
        one.close()


async def _append(log: MemoryLog, records: Sequence[Record]) -> None:
    await log.append(EVENTS, 0, records)


async def test_a_rebuild_that_the_server_ends_can_be_done_again(in_postgres: PostgresPlace) -> None:
    log = await random_history(seed=4, steps=STEPS).log()
    tables = in_postgres.open(views=views_with(Disturbed(end_connection, 15)))
    await Projector(log, tables, batch_records=BATCH).catch_up()
    before, names = dump(tables), in_postgres.table_names(tables)
    with pytest.raises(StorageFailed):
        await rebuild(log, tables, batch_records=BATCH)
    assert dump(tables) == before
    assert in_postgres.table_names(tables) == names
    await rebuild(log, tables)
    assert dump(tables) == before


async def test_what_stays_of_a_rebuild_when_the_server_dies_goes_with_the_next_one(server: SystemPostgres) -> None:
    log = await random_history(seed=4, steps=STEPS).log()
    journal = Disturbed(lambda _: server.kill(), 15)
    tables = Tables.connect(server.url, views_with(journal), schema="rebuilt")
    await Projector(log, tables, batch_records=BATCH).catch_up()
    before = dump(tables)
    with pytest.raises(StorageFailed) as died:
        await rebuild(log, tables, batch_records=BATCH)
    assert "refused" not in died.value.message  # why it ended, not that there was nobody to clean up
    server.start()
    assert _versions(tables) == {"graph": 1, "reports": 1, "journal": 2, "dead_letters": 2}  # the others were done
    await rebuild(log, tables)
    assert _versions(tables) == {"graph": 1, "reports": 1, "journal": 1, "dead_letters": 1}
    assert dump(tables) == before
    tables.close()


def _versions(tables: Tables) -> dict[str, int]:
    with tables.reading() as connection:
        return {name: len(positions.versions(connection, name)) for name in tables.views}


async def test_a_process_that_stands_still_inside_a_batch_does_not_hold_up_the_others(
    in_postgres: PostgresPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await random_history(seed=5, steps=STEPS).log()
    other = in_postgres.open()

    def stand_still(_: Session) -> None:
        asyncio.run(Projector(log, other, batch_records=BATCH).catch_up())  # waits for the lock that is held here

    monkeypatch.setattr(postgres, "IDLE_TIMEOUT_S", 1.0)
    tables = in_postgres.open(views=views_with(Disturbed(stand_still, 3)))
    projector = Projector(log, tables, batch_records=BATCH)
    with pytest.raises(StorageFailed) as ended:
        await projector.catch_up()
    assert ended.value.retry
    await projector.catch_up()
    assert dump(tables) == await project(log, tmp_path / "whole.db")


async def test_a_statement_that_takes_too_long_is_ended(postgres_url: str, in_postgres: PostgresPlace) -> None:
    in_postgres.open()  # who makes the tables has time for it
    tables = Tables.connect(postgres_url, schema=in_postgres.schema(), statement_timeout_s=0.5)
    with pytest.raises(StorageFailed, match="statement timeout"), tables.reading() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(60)")
    tables.close()


async def test_more_who_read_than_connections_wait_and_then_are_told(
    postgres_url: str, in_postgres: PostgresPlace
) -> None:
    tables = Tables.connect(postgres_url, schema=in_postgres.schema(), connections=1, busy_timeout_s=0.2)
    with tables.reading(), pytest.raises(StorageFailed, match="all connections are in use"):
        Queries(tables).position()
    assert Queries(tables).position().next_offset == 0
    tables.close()
