"""The database of the views: columns from row types, SQL for more than one database, versions and their layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from dagbok.events.codes import Code
from dagbok.events.errors import FormatTooNew, StorageFailed
from dagbok.events.rule import GENESIS
from dagbok.projections.projector import Projector, rebuild
from dagbok.projections.queries import Queries
from dagbok.projections.tables import positions
from dagbok.projections.tables.rows import Row
from dagbok.projections.tables.session import ViewTables
from dagbok.projections.tables.statements import Patch, insert_of, update_of
from dagbok.projections.views import VIEWS
from dagbok.projections.views.graph import GraphView, patches
from dagbok.projections.views.reports import ReportsView
from dagbok.projections.views.view import View
from dagbok.testing.make import start, task
from tests.support.logbuilder import LogBuilder
from tests.support.places import Place, SqlitePlace
from tests.support.projecting import dump, project

ROWS = [row for view in VIEWS for row in view.rows]
PATCHES: list[type[Patch]] = [
    *(patches.Started, patches.Unserved, patches.Ended, patches.Judged, patches.Published),
    *(patches.Charged, patches.Spent, patches.Replaced, patches.Rewired, patches.Settled),
    *(patches.TasksCancelled, patches.AttemptsCancelled),
]
DIALECTS = {
    "sqlite": sqlite.dialect(),
    "postgresql": postgresql.psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}


class NewerGraph(GraphView):
    """The graph as a later dagbok lays it out."""

    layout = GraphView.layout + 1  # type: ignore[misc]


def _views(graph: View) -> Sequence[View]:
    return graph, *[view for view in VIEWS if view.name != graph.name]


@pytest.mark.parametrize("row", ROWS)
def test_every_row_carries_tenant_and_project_and_has_a_key(row: type[Row]) -> None:
    assert row.__struct_fields__[:2] == ("tenant", "project")
    table = ViewTables((row,), 1, sqlite.dialect(), live=True).table(row)
    assert [column.name for column in table.primary_key] == list(row.key)
    assert [column.name for column in table.columns] == list(row.__struct_fields__)
    assert set(row.changing).isdisjoint({"tenant", "project", *row.key})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_everything_is_said_in_the_sql_of_any_database(dialect: str) -> None:
    spoken = DIALECTS[dialect]
    for view in VIEWS:
        tables = ViewTables(view.rows, 1, spoken, live=True)
        for row in view.rows:
            assert "CREATE TABLE" in str(sa.schema.CreateTable(tables.table(row)).compile(dialect=spoken))
            assert tables.statement(insert_of, row).sql.startswith("COPY" if dialect == "postgresql" else "INSERT INTO")
            if row.changing:
                assert tables.statement(update_of, row).sql.startswith("UPDATE")
    graph = ViewTables(GraphView().rows, 1, spoken, live=True)
    for patch in PATCHES:
        assert graph.patch(patch).sql.startswith("UPDATE")


def test_every_patch_is_spoken_above() -> None:
    def below(kind: type[Patch]) -> set[type[Patch]]:
        return {kind, *(other for child in kind.__subclasses__() for other in below(child))}

    ours = {kind for kind in below(Patch) if kind.__module__.startswith("dagbok.") and kind is not Patch}
    assert set(PATCHES) == {kind for kind in ours if "statement" in vars(kind)}


def test_opening_twice_changes_nothing(place: Place) -> None:
    first = place.open()
    second = place.open()
    assert dump(first) == dump(second)
    first.close()
    second.close()


def test_the_file_is_a_wal_that_is_not_synced_for_every_batch(tmp_path: Path) -> None:
    tables = SqlitePlace(tmp_path).open()
    with tables.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1
    tables.close()


async def test_tables_of_an_older_layout_are_built_again_before_anything_is_added(place: Place, tmp_path: Path) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    await place.projected(builder)
    builder.send("run-2", start(task("root")))
    log = await builder.log()
    tables = place.open(views=_views(NewerGraph()))
    assert tables.outdated() == ["graph"]
    with pytest.raises(StorageFailed, match="start dagbok up") as refused:
        Queries(tables).list_runs("acme", "docs")
    assert refused.value.code is Code.SCHEMA_MISMATCH
    await Projector(log, tables).catch_up()
    assert [run.run for run in Queries(tables).list_runs("acme", "docs")] == ["run-1", "run-2"]
    assert tables.outdated() == []
    assert dump(tables) == await project(log, tmp_path / "other.db")
    tables.close()


async def test_tables_of_a_newer_layout_are_left_alone(place: Place) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    log = await builder.log()
    older = place.open()
    projector = Projector(log, older)
    await projector.catch_up()
    newer = place.open(views=_views(NewerGraph()))
    await rebuild(log, newer, ["graph"])
    before = dump(newer)
    builder.send("run-2", start(task("root")))
    await builder.append_to(log, 1)
    with pytest.raises(FormatTooNew, match=f"layout {NewerGraph.layout}, here it is {GraphView.layout}"):
        await projector.catch_up()
    with pytest.raises(FormatTooNew):
        Queries(older).list_runs("acme", "docs")
    with pytest.raises(FormatTooNew):
        place.open()
    assert dump(newer) == before
    older.close()
    newer.close()


async def test_a_view_that_is_new_catches_up_with_those_that_were_there(place: Place, tmp_path: Path) -> None:
    builder = LogBuilder()
    for number in range(4):
        builder.send(f"run-{number}", start(task("root")))
    builder.void(b"no commit")
    log = await builder.log()
    before = place.open(views=(GraphView(), ReportsView()))
    await Projector(log, before).catch_up()
    before.close()
    builder.send("run-5", start(task("root")))
    builder.void(b"no commit")
    await builder.append_to(log, 5)
    after = place.open()
    await Projector(log, after, batch_records=10).catch_up()
    assert dump(after) == await project(log, tmp_path / "other.db")
    with after.reading() as connection:
        assert [positions.void_records(connection, name, 1) for name in after.views] == [2, 2, 2, 2]
    after.close()


async def test_queries_never_go_back_to_a_version_that_has_read_less(place: Place) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    tables = place.open()
    await Projector(await builder.log(), tables).catch_up()
    before = dump(tables)
    version = tables.begin_version("graph", 1)
    assert not tables.swap("graph", version, [GENESIS])
    assert dump(tables) == before
    tables.discard("graph", version)
    tables.close()


async def test_after_a_rebuild_nothing_of_older_versions_is_left(place: Place) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    log = await builder.log()
    tables = place.open()
    await Projector(log, tables).catch_up()
    names = place.table_names(tables)
    tables.begin_version("journal", 1)  # as a rebuild that was killed leaves it
    await rebuild(log, tables)
    assert place.table_names(tables) == names
    with tables.reading() as connection:
        for name in tables.views:
            assert positions.versions(connection, name) == [tables.live_version(connection, name)]
    tables.close()
