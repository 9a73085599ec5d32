"""Limits on the command line: `NAME=NUMBER`, with names that a shell completes. What they mean is in `limits.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from dagbok.events.run.values import Limits

NAMES: Final = tuple(f"{name}=" for name in Limits.__struct_fields__)

if TYPE_CHECKING:
    Change = str
else:
    Change = Literal[NAMES] | str  # the names are what a shell completes; any text is taken

LimitOptions = Annotated[
    list[Change] | None,
    Parameter(
        name="--limit",
        negative="",
        show_choices=False,
        help="NAME=NUMBER: what the run may use, max_tokens=10000 say; repeatable. For the names see docs/cli.md, or "
        '"dagbok limits RUN".',
    ),
]
LimitChange = Annotated[
    Change, Parameter(show_choices=False, help="NAME=NUMBER, max_tokens=20000 say; none: show them.")
]
