"""What is special to PostgreSQL: texts it does not take, orders it has of its own, errors and what they advise."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, StorageFailed
from dagbok.events.run.commands import PauseRun
from dagbok.projections.projector import Projector, rebuild
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables
from dagbok.projections.tables.postgres_errors import explain
from dagbok.testing import act
from dagbok.testing.make import decompose, start, task
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.places import Place, PostgresPlace
from tests.support.projecting import dump, project

ME = ("acme", "docs")
PASSWORD = "s3cret-word"


async def test_a_nul_in_a_text_does_not_halt_the_projector_and_is_shown_by_its_symbol(
    in_postgres: PostgresPlace,
) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root", goal="count\0lines")))
    builder.send("run-1", PauseRun("for\0lunch"))
    builder.deliver(
        b'{"v":1,"type":"\\u0000","version":1,"id":"\\u0000","tenant":"a\\u0000","project":"b","stream":"run:x",'
        b'"actor":"user:\\u0000","first_sent_ms":1,"data":{}}'
    )
    queries = Queries(await in_postgres.projected(builder))
    root, run = queries.get_task(*ME, "run-1", "root"), queries.get_run(*ME, "run-1")
    assert root is not None
    assert run is not None
    assert (root.goal, run.reason) == ("count␀lines", "for␀lunch")
    (paused,) = queries.journal(*ME, "run-1", types=["RunPaused"])
    assert msgspec.json.decode(paused.data)["reason"] == "for\0lunch"  # the JSON of the log, byte for byte
    (refused,) = queries.refusals("a␀", "b")
    assert (refused.actor, refused.command_id) == ("user:␀", "␀")
    assert queries.refusals("a\0", "b") == []


async def test_a_nul_in_a_text_is_kept_in_sqlite(tmp_path: Path) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root", goal="count\0lines")))
    rows = await project(await builder.log(), tmp_path / "tables.db")
    assert "count\0lines" in [getattr(row, "goal", None) for row in rows["tasks"]]


async def test_rows_are_ordered_by_the_bytes_of_their_texts(place: Place) -> None:
    names = ["_", "-", ".", "B", "Z", "a", "b", "0", "aB", "a-b", "a.b", "ab"]
    builder = LogBuilder()
    for name in names:
        builder.send(name, start(task("root")))  # all of them at one moment
    children = [task(name) for name in names]
    builder.send("B", act.submit_outcome(builder.run("B"), "root", decompose(*children)))
    queries = Queries(await place.projected(builder))
    listed = [run.run for run in queries.list_runs(*ME)]
    assert listed == sorted(names, key=str.encode)
    paged = list[str]()
    while page := queries.list_runs(*ME, limit=5, behind=(builder.now_ms, paged[-1]) if paged else None):
        paged += [run.run for run in page]
    assert paged == listed
    assert [edge.dependency for edge in queries.edges(*ME, "B", "root")] == sorted(names, key=str.encode)


def test_who_reads_sees_one_moment_and_cannot_write(in_postgres: PostgresPlace) -> None:
    tables = in_postgres.open()
    with tables.reading() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "repeatable read"
    with pytest.raises(StorageFailed, match="read-only"), tables.reading() as connection:
        connection.exec_driver_sql("DELETE FROM runs")


def test_tables_of_one_schema_are_not_those_of_another(in_postgres: PostgresPlace) -> None:
    one, two = in_postgres.open("one"), in_postgres.open("two")
    with one.writing() as connection:
        connection.exec_driver_sql("UPDATE views SET version = 7 WHERE view = 'graph'")
    with two.reading() as connection:
        assert two.live_version(connection, "graph") == 1


async def test_what_was_built_on_the_tables_stands_in_the_way_of_a_rebuild_which_says_so(
    postgres_url: str, in_postgres: PostgresPlace
) -> None:
    log = await random_history(seed=1, steps=40).log()
    tables = in_postgres.open()
    await Projector(log, tables).catch_up()
    before, schema = dump(tables), sql.Identifier(in_postgres.schema())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE VIEW {}.mine AS SELECT * FROM {}.runs").format(schema, schema))
        with pytest.raises(StorageFailed, match="other objects depend on it") as refused:
            await rebuild(log, tables)
        assert "SQL views" in refused.value.advice
        assert dump(tables) == before
        connection.execute(sql.SQL("DROP VIEW {}.mine").format(schema))
    await rebuild(log, tables)
    assert dump(tables) == before


async def test_tables_that_somebody_changed_say_what_to_do(postgres_url: str, in_postgres: PostgresPlace) -> None:
    tables = in_postgres.open()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP TABLE {}.runs").format(sql.Identifier(in_postgres.schema())))
    with pytest.raises(StorageFailed, match="is damaged") as damaged:
        Queries(tables).list_runs(*ME)
    assert damaged.value.advice.startswith(f"DROP SCHEMA {in_postgres.schema()} CASCADE")


def test_a_database_that_is_not_in_utf8_is_refused(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS not_utf8")
        connection.execute(
            "CREATE DATABASE not_utf8 TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
        )
        try:
            with pytest.raises(StorageFailed, match="not in UTF8"):
                Tables.connect(psycopg_url(postgres_url, "not_utf8"))
        finally:
            connection.execute("DROP DATABASE not_utf8 WITH (FORCE)")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgresql://me:{PASSWORD}@127.0.0.1:1/db", "start the database"),
        (f"postgres://me:{PASSWORD}@no-host.invalid/db", "correct its address"),
    ],
)
def test_a_server_that_is_not_there_may_come_and_its_password_is_not_told(url: str, said: str) -> None:
    with pytest.raises(StorageFailed, match=said) as failed:
        Tables.connect(url)
    assert failed.value.retry
    assert "\n" not in str(failed.value)
    assert PASSWORD not in str(failed.value)


def test_a_database_that_is_not_there_is_named(postgres_url: str) -> None:
    with pytest.raises(StorageFailed, match="nowhere"):
        Tables.connect(psycopg_url(postgres_url, "nowhere"))


def test_the_url_may_name_the_schema_so_that_two_logs_share_a_database(in_postgres: PostgresPlace) -> None:
    for name in ("one", "two"):
        in_postgres.open(name)
    found = []
    for name in ("one", "two"):
        joined = "&" if "?" in in_postgres.url else "?"
        tables = Tables.connect(f"{in_postgres.url}{joined}schema={in_postgres.schema(name)}")
        try:
            with tables.reading() as connection:
                found.append(connection.exec_driver_sql("SELECT current_schema()").scalar_one())
        finally:
            tables.close()
    assert found == [in_postgres.schema("one"), in_postgres.schema("two")]


@pytest.mark.parametrize("query", ["schema=Dagbok", "schema=pg_mine", "schema=one&schema=two"])
def test_a_schema_that_a_url_names_is_held_to_the_same(query: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Tables.connect(f"postgresql://host/db?{query}&sslmode=require")
    assert refused.value.code is Code.USAGE


@pytest.mark.parametrize(
    ("url", "schema"),
    [
        (f"no url {PASSWORD}", "dagbok"),
        (f"mysql://me:{PASSWORD}@host/db", "dagbok"),
        ("postgresql://host/db", "Dagbok"),
        ("postgresql://host/db", 'x"; DROP'),
        ("postgresql://host/db", "pg_mine"),
        ("postgresql://host/db", ""),
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_tried(url: str, schema: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Tables.connect(url, schema=schema)
    assert refused.value.code is Code.USAGE
    assert PASSWORD not in str(refused.value)


STATES = {
    "53100": "make room",  # disk full
    "53300": "make room",  # too many connections
    "57P03": "start the database",  # it has not started up yet
    "08006": "start the database",
    "28P01": "user and password",
    "25006": "name the primary",
    "40P01": "try again",  # deadlock
    "40001": "try again",
    "25P03": "stood still",
    "42703": "DROP SCHEMA mine CASCADE",  # no such column
    "23505": "DROP SCHEMA mine CASCADE",  # a row that is there already
    "XX001": "DROP SCHEMA mine CASCADE",
    "58030": "free disk space",
}


@pytest.mark.parametrize("state", STATES)
def test_every_error_of_a_server_says_what_to_do(state: str) -> None:
    cause = psycopg.errors.lookup(state)("first line\nsecond")
    error = sa.exc.DBAPIError("SELECT", None, cause)
    explained = explain(error, "schema mine of host/db", "mine")
    assert STATES[state] in explained.advice
    assert explained.retry
    assert "\n" not in str(explained)


def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidInput, match=r"pip install '\.\[postgres\]'"):
        Tables.connect("postgresql://host/db")


def psycopg_url(url: str, database: str) -> str:
    """The same server, another database."""
    base, _, rest = url.rpartition("/")
    return f"{base}/{database}{'?' + rest.split('?', 1)[1] if '?' in rest else ''}"
