"""The part of `docs/tables.md` that is made from the code. `python -m tests.support.tables_page` writes it anew."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import NoneType, UnionType
from typing import Final, Literal, Union, get_args, get_origin, get_type_hints

from dagbok.projections.tables.rows import Row, column_types
from dagbok.projections.views import VIEWS
from dagbok.projections.views.view import View

PAGE: Final = Path(__file__).parents[2] / "docs" / "tables.md"
BEGIN: Final = "<!-- made from the code: python -m tests.support.tables_page -->\n"
END: Final = "<!-- end of what is made -->\n"


def made() -> str:
    """All views, with their tables and columns."""
    return "\n".join([_view(view) for view in VIEWS])


def written() -> str:
    """The same part as the page has it."""
    return PAGE.read_text().split(BEGIN)[1].split(END)[0]


def write() -> None:
    """Put the part into the page."""
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + made() + END + rest.split(END)[1])


def _view(view: View) -> str:
    head = f"### View `{view.name}`, layout {view.layout}\n\n"
    return head + "\n".join([_table(row) for row in view.rows])


def _table(row: type[Row]) -> str:
    hints, types = get_type_hints(row), column_types(row)
    lines = [f"#### `{row.table}`\n", inspect.getdoc(row) or "", ""]
    lines.append(f"Primary key: {_names(row.key)}." + "".join([f" Index: {_names(index)}." for index in row.indexes]))
    lines += ["", "| column | type | values |", "|---|---|---|"]
    for name in row.__struct_fields__:
        lines.append(f"| `{name}` | {str(types[name]).lower()} | {_values(hints[name])} |")
    return "\n".join(lines) + "\n"


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join([f"`{column}`" for column in columns])


def _values(hint: object) -> str:
    """The words that a column may have, and whether it may have none."""
    if get_origin(hint) in (Union, UnionType):
        (inner,) = [arg for arg in get_args(hint) if arg is not NoneType]
        return " or ".join([part for part in (_values(inner), "null") if part])
    if get_origin(hint) is Literal:
        return ", ".join([f"`{word}`" for word in get_args(hint)])
    return ""


if __name__ == "__main__":
    write()
