"""Statements for thousands of rows at a time in PostgreSQL, a column at a time (`columns.py`).

New rows are copied; changes are one statement, whose items come as one array per column:

    COPY tasks (…) FROM STDIN
    UPDATE tasks SET … FROM unnest($1, $2, …) AS given(…) WHERE tasks.run = given.run AND …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql import operators, visitors

from dagbok.projections.tables.columns import copied_numbers, copied_texts, number_array, text_array

PREFIX: Final = "p_"
"""Before the name of a bound parameter: Core keeps the bare names of columns for itself."""

ROWS_AT_ONCE: Final = 5_000
CHARS_AT_ONCE: Final = 64 << 20
"""A statement is kept whole in memory, here and there, and may never have more than 1 GiB."""

Types = Mapping[str, sa.types.TypeEngine[Any]]


class Copy:
    """Copies whole rows into a table. A row that is there already is an error."""

    def __init__(self, table: sa.Table, types: Types, dialect: sa.Dialect) -> None:
        quote = dialect.identifier_preparer.quote
        self.sql = f"COPY {quote(table.name)} ({', '.join(map(quote, types))}) FROM STDIN"
        self._take = attrgetter(*types)
        self._columns = [copied_texts if isinstance(type_, sa.Text) else copied_numbers for type_ in types.values()]

    def run(self, connection: sa.Connection, items: Sequence[Any]) -> None:
        """Copy the rows."""
        driver: Any = connection.connection  # the interface of all drivers knows no COPY
        with _raised_as_by_core(connection, self.sql), driver.cursor() as cursor, cursor.copy(self.sql) as copy:
            for start in range(0, len(items), ROWS_AT_ONCE):
                copy.write(self._lines(items[start : start + ROWS_AT_ONCE]))

    def _lines(self, items: Sequence[Any]) -> str:
        columns = zip(*map(self._take, items), strict=True)
        fields = [copied(column) for copied, column in zip(self._columns, columns, strict=True)]
        return "\n".join(map("\t".join, zip(*fields, strict=True))) + "\n"


class Bulk:
    """An update that finds its rows by their key, for many items in one statement."""

    def __init__(self, statement: sa.Update, types: Types, dialect: sa.Dialect) -> None:
        """`types`: of the columns that items bring, by the names of their parameters without `PREFIX`. Raises
        `ValueError` for an update with another condition."""
        key = key_of(statement)
        if key is None:
            raise ValueError(f"{statement} does not find its rows by their key")
        compiled = _from(statement, _given(types)).compile(dialect=dialect)
        self.sql = str(compiled)
        self._constants = compiled.params
        self._parameters = compiled.positiontup or []
        self._names = list(types)
        self._take = attrgetter(*types)
        self._arrays = [text_array if isinstance(type_, sa.Text) else number_array for type_ in types.values()]
        self._key = attrgetter(*key)

    def run(self, connection: sa.Connection, items: Sequence[Any]) -> None:
        """Run it, so that the last of several items for one row decides, as if they came one by one."""
        for round_ in self._rounds(items):
            for start in range(0, len(round_), ROWS_AT_ONCE):
                self._run(connection, round_[start : start + ROWS_AT_ONCE])

    def _run(self, connection: sa.Connection, items: Sequence[Any]) -> None:
        columns = zip(*map(self._take, items), strict=True)
        arrays = [array(column) for array, column in zip(self._arrays, columns, strict=True)]
        if len(items) > 1 and sum(map(len, arrays)) > CHARS_AT_ONCE:
            self._run(connection, items[: len(items) // 2])
            self._run(connection, items[len(items) // 2 :])
            return
        values = {**self._constants, **dict(zip(self._names, arrays, strict=True))}
        connection.exec_driver_sql(self.sql, tuple([values[name] for name in self._parameters]))

    def _rounds(self, items: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """An update changes a row once, whatever it is given: items for one row come in rounds, in their order."""
        if len(set(map(self._key, items))) == len(items):
            yield items
            return
        rounds: list[list[Any]] = []
        seen: dict[object, int] = {}
        for item in items:
            key = self._key(item)
            number = seen[key] = seen.get(key, -1) + 1
            if number == len(rounds):
                rounds.append([])
            rounds[number].append(item)
        yield from rounds


def key_of(statement: sa.Update) -> list[str] | None:
    """The parameters by which an update finds its rows, when these are columns of the key that it does not change: then
    updates by different ones do not meet. None: it finds them in another way, and must run one by one."""
    changed = {getattr(column, "name", column) for column in statement._values or {}}
    key = list[str]()
    for condition in statement._where_criteria:
        if not (isinstance(condition, sa.BinaryExpression) and condition.operator is operators.eq):
            return None
        column, parameter = condition.left, condition.right
        if not (isinstance(column, sa.Column) and column.primary_key and isinstance(parameter, sa.BindParameter)):
            return None
        if column.name in changed:
            return None
        key.append(parameter.key.removeprefix(PREFIX))
    return key or None


def any_of(column: sa.Column[Any], values: Sequence[str]) -> sa.ColumnElement[bool]:
    """The column has one of many values: one parameter, however many they are."""
    array = sa.cast(sa.bindparam(None, text_array(values), type_=sa.types.NullType()), ARRAY(sa.Text))
    return column == sa.any_(array)


def _given(types: Types) -> sa.TableValuedAlias:
    arrays = [
        sa.cast(sa.bindparam(name, type_=sa.types.NullType()), ARRAY(_plain(type_))) for name, type_ in types.items()
    ]
    columns = [sa.column(name, _plain(type_)) for name, type_ in types.items()]
    return sa.func.unnest(*arrays).table_valued(*columns, name="given").render_derived()


def _from(statement: sa.Update, given: sa.TableValuedAlias) -> sa.Update:
    """The statement with columns of `given` in the place of its parameters."""

    def replaced(element: visitors.ExternallyTraversible, **_: Any) -> visitors.ExternallyTraversible | None:
        if isinstance(element, sa.BindParameter) and element.key.startswith(PREFIX):
            column: sa.ColumnElement[Any] = given.c[element.key.removeprefix(PREFIX)]
            return column
        return None

    return visitors.replacement_traverse(statement, {}, replaced)  # type: ignore[return-value]


def _plain(type_: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    """Without a collation, which belongs to the column."""
    return sa.Text() if isinstance(type_, sa.Text) else type_


@contextmanager
def _raised_as_by_core(connection: sa.Connection, sql: str) -> Iterator[None]:
    """What the driver raises behind Core's back is raised as Core would."""
    dialect = connection.dialect
    driver = dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        gone = dialect.is_disconnect(error, None, None)
        raise sa.exc.DBAPIError.instance(sql, None, error, driver.Error, connection_invalidated=gone) from error
