"""Which fold a snapshot was made by: one of another fold is not read, because its state would mean something else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import Final, get_args

import msgspec

from dagbok.projections.partition import Remembered
from dagbok.projections.task_graph.state import RunState

FOLD_VERSION: Final = 1
"""Raised when a fold changes its meaning: when the same events lead to another state of the same shape."""


@cache
def fold_name() -> str:
    """The version of the folds, and a digest of the shape of the state: every field with its type and default.

    A field that is added, dropped or retyped gives another name by itself, whoever forgets to raise the version.
    """
    shapes: dict[str, list[tuple[str, str, str]]] = {}
    todo: list[type] = [RunState, Remembered]
    while todo:
        struct = todo.pop()
        if struct.__name__ not in shapes:
            fields = msgspec.structs.fields(struct)
            shapes[struct.__name__] = [(field.name, str(field.type), _default(field.default)) for field in fields]
            todo += [found for field in fields for found in _structs(field.type)]
    return f"{FOLD_VERSION}-{sha256(msgspec.json.encode(sorted(shapes.items()))).hexdigest()[:16]}"


def _structs(annotation: object) -> Iterator[type[msgspec.Struct]]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation
    for argument in get_args(annotation):
        yield from _structs(argument)


def _default(value: object) -> str:
    """Plain values as they are written; of others (and of none at all) the type says enough."""
    return repr(value) if isinstance(value, str | int | tuple | None) else type(value).__name__
