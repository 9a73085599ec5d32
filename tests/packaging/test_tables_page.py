"""`docs/tables.md` is a contract: its columns are those of the code, and its SQL runs as it stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from psycopg import sql

from dagbok.events.errors import StorageFailed
from dagbok.projections.projector import Projector, rebuild
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables
from dagbok.projections.tables import positions
from tests.support.histories import random_history
from tests.support.places import PostgresPlace
from tests.support.projecting import dump
from tests.support.tables_page import PAGE, made, written

# The names of the page may be in use where the tests run.
OWNER, READER = "test_tables", "test_reader"
BLOCKS = [
    re.sub(r"\bdagbok\b", OWNER, block.replace("dagbok_reader", READER))
    for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
]


def test_the_columns_are_those_of_the_code() -> None:
    assert written() == made(), "write it anew: python -m tests.support.tables_page"


def test_the_columns_of_views_and_positions_are_named() -> None:
    text = PAGE.read_text()
    named = set(re.findall(r"`(\w+)`", text[text.index("## `views` and") : text.index("## All tables")]))
    for table in (positions.VIEWS, positions.POSITIONS):
        assert {column.name for column in table.columns} <= named


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection]:
    """Has done what the page has a superuser do."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        _remove(connection)
        for block in BLOCKS:
            if "CREATE ROLE" in block:
                connection.execute(block.encode())
        yield connection
        _remove(connection)


def _remove(admin: psycopg.Connection) -> None:
    for role in (READER, OWNER):
        if admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
            admin.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(role)))
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def _tables(url: str, role: str) -> Tables:
    """As this role, however the server lets people in."""
    return Tables.connect(f"{url}{'&' if '?' in url else '?'}options=-c%20role%3D{role}", schema=OWNER)


async def test_the_roles_of_the_page_can_do_what_it_says_and_no_more(
    postgres_url: str, admin: psycopg.Connection
) -> None:
    log = await random_history(seed=1, steps=60).log()
    with closing(_tables(postgres_url, OWNER)) as tables:
        await Projector(log, tables).catch_up()
        for times in range(2):
            with closing(_tables(postgres_url, READER)) as read:
                assert dump(read) == dump(tables)
                assert Queries(read).list_runs("acme", "docs")
                with pytest.raises(StorageFailed, match="permission denied") as refused:
                    await rebuild(log, read)
                assert "docs/tables.md" in refused.value.advice
            if times == 0:
                await rebuild(log, tables)


async def test_a_role_that_may_not_make_the_schema_is_told_so(postgres_url: str, admin: psycopg.Connection) -> None:
    admin.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(OWNER)))
    with pytest.raises(StorageFailed, match="permission denied") as refused:
        _tables(postgres_url, READER)
    assert "docs/tables.md" in refused.value.advice


async def test_the_queries_of_the_page_run(postgres_url: str, admin: psycopg.Connection) -> None:
    log = await random_history(seed=1, steps=120).log()
    with closing(_tables(postgres_url, OWNER)) as tables:
        await Projector(log, tables).catch_up()
    queries = [part for block in BLOCKS if "SELECT run" in block for part in block.split(";") if part.strip()]
    assert len(queries) == 3
    for query in queries:
        assert admin.execute(query.encode()).fetchall()
    (begin,) = [block for block in BLOCKS if "LOCK TABLE" in block]
    admin.execute(begin.encode())
    assert admin.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
    admin.execute("COMMIT")


def test_what_postgresql_is_told_of_texts_is_what_the_page_says(postgres_url: str, in_postgres: PostgresPlace) -> None:
    in_postgres.open()
    collations = (
        "SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_schema = %s AND data_type = 'text'"
    )
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute(collations, (in_postgres.schema(),)).fetchall() == [("C",)]
