"""Whatever the values are, a row in PostgreSQL is the row that was written; only U+0000 is shown by its symbol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.projections.store import Tables
from dagbok.projections.tables.bulk import Bulk, Copy
from dagbok.projections.tables.columns import NUL, NUL_SHOWN
from dagbok.projections.tables.rows import GREATEST, Row
from dagbok.projections.tables.session import Session
from dagbok.projections.tables.statements import Patch, bound
from dagbok.projections.views.view import Told
from tests.support.places import postgres_place
from tests.support.scale import scale


class SampleRow(Row):
    """A column of every type, with names that SQL has for itself."""

    table: ClassVar[str] = "order"
    key: ClassVar[tuple[str, ...]] = ("group", "number")
    changing: ClassVar[tuple[str, ...]] = ("select", "where", "end", "all")

    group: str
    number: int
    select: str
    where: str | None
    end: int | None
    all: bool
    seen: int = 0


class Seen(Patch):
    """One more."""

    row: ClassVar[type[Row]] = SampleRow

    group: str
    number: int

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        key = (table.c.group == bound("group"), table.c.number == bound("number"))
        return sa.update(table).where(*key).values(seen=table.c.seen + 1)


class Named(Patch):
    """All of a group that have a text get another; of none, they keep theirs."""

    row: ClassVar[type[Row]] = SampleRow

    group: str
    where: str | None

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        values = {"where": sa.func.coalesce(bound("where"), table.c["where"])}
        return sa.update(table).where(table.c.group == bound("group")).values(values)


class Moved(Patch):
    """A group has another name: what it finds its rows by is what it changes."""

    row: ClassVar[type[Row]] = SampleRow

    group: str
    to: str

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return sa.update(table).where(table.c.group == bound("group")).values(group=bound("to"))


class Samples:
    """A view of nothing but that table."""

    name = "samples"
    layout = 1
    rows = (SampleRow,)

    def write(self, session: Session, batch: list[Told]) -> None:
        """Nothing."""


texts = st.text(
    st.one_of(st.sampled_from(" \0\t\n\r\\\"'{},NULLé\u2400\x02\x1a"), st.characters(codec="utf-8")), max_size=12
)
numbers = st.one_of(st.integers(-GREATEST, GREATEST), st.sampled_from((0, GREATEST, -GREATEST)))
values = st.tuples(texts, st.none() | texts, st.none() | numbers, st.booleans())
examples = settings(max_examples=scale(40, 2_000), deadline=None)


@pytest.fixture(scope="module")
def tables(postgres_url: str) -> Iterator[Tables]:
    with postgres_place(postgres_url) as place:
        yield place.open(views=(Samples(),))  # type: ignore[arg-type]


@examples
@given(written=st.lists(values, min_size=1, max_size=8), changed=st.lists(values, min_size=1, max_size=8))
def test_rows_come_back_as_they_were_written(
    tables: Tables,
    written: list[tuple[str, str | None, int | None, bool]],
    changed: list[tuple[str, str | None, int | None, bool]],
) -> None:
    rows = [SampleRow("acme", "docs", "g", number, *value) for number, value in enumerate(written)]
    with tables.writing() as connection:
        session = tables.live(connection, "samples")
        session.insert(rows)
        assert _read(session) == [_shown(row) for row in rows]
        updates = [SampleRow("", "", "g", number, *value) for number, value in enumerate(changed[: len(written)])]
        session.update(updates)
        expected = [
            SampleRow("acme", "docs", "g", row.number, *value) for row, value in zip(rows, changed, strict=False)
        ]
        assert _read(session) == [_shown(row) for row in expected + rows[len(expected) :]]
        connection.rollback()


@examples
@given(numbers=st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_several_changes_of_a_row_count_as_if_they_came_one_by_one(tables: Tables, numbers: list[int]) -> None:
    with tables.writing() as connection:
        session = tables.live(connection, "samples")
        session.insert([SampleRow("", "", "g", number, "", None, None, False) for number in range(4)])
        session.patch([Seen("g", number) for number in numbers])
        assert [row.seen for row in _read(session)] == [numbers.count(number) for number in range(4)]
        session.update(
            [SampleRow("", "", "g", number, str(place), None, None, True) for place, number in enumerate(numbers)]
        )
        last = {str(number): str(place) for place, number in enumerate(numbers)}
        assert {str(row.number): row.select for row in _read(session) if row.all} == last
        connection.rollback()


def test_part_of_the_key_finds_all_rows_that_have_it(tables: Tables) -> None:
    with tables.writing() as connection:
        session = tables.live(connection, "samples")
        session.insert(
            [SampleRow("", "", group, number, "", None, None, False) for group in "ab" for number in range(2)]
        )
        session.patch([Named("a", "one"), Named("b", None), Named("a", "two")])
        assert [row.where for row in _read(session)] == ["two", "two", None, None]
        connection.rollback()


def test_changes_of_what_rows_are_found_by_come_one_by_one(tables: Tables) -> None:
    with tables.writing() as connection:
        session = tables.live(connection, "samples")
        session.insert([SampleRow("", "", "a", 1, "", None, None, False)])
        session.patch([Moved("a", "b"), Moved("b", "c")])
        assert [row.group for row in _read(session)] == ["c"]
        connection.rollback()


def test_more_rows_than_one_statement_takes_come_in_several(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagbok.projections.tables.bulk.ROWS_AT_ONCE", 3)
    monkeypatch.setattr("dagbok.projections.tables.bulk.CHARS_AT_ONCE", 40)
    with tables.writing() as connection:
        session = tables.live(connection, "samples")
        rows = [SampleRow("", "", "g", number, "text", None, None, False) for number in range(8)]
        session.insert(rows)
        for row in rows:
            row.select = f"another text {row.number}"
        session.update(rows)
        assert _read(session) == rows
        connection.rollback()


def test_only_what_is_found_by_its_key_is_changed_in_bulk(tables: Tables) -> None:
    of = tables.tables_of(tables.views["samples"], 1, live=True)
    assert isinstance(of.patch(Seen), Bulk)
    assert isinstance(of.patch(Named), Bulk)
    assert not isinstance(of.patch(Moved), Bulk | Copy)


def _read(session: Session) -> list[SampleRow]:
    return sorted(session.select(SampleRow), key=lambda row: (row.group, row.number))


def _shown(row: SampleRow) -> SampleRow:
    select, where = row.select.replace(NUL, NUL_SHOWN), row.where and row.where.replace(NUL, NUL_SHOWN)
    return msgspec.structs.replace(row, select=select, where=where)
