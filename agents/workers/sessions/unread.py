"""Lists of a session whose items stay the JSON that they were written as until somebody reads them."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

Path = tuple[str, ...]


class Unread(list[msgspec.Raw]):
    """A list that was added to, as it is kept in memory: each item is JSON."""


def read(value: Any) -> Any:
    """A copy of a value of a session, as plain JSON."""
    return orjson.loads(orjson.dumps(value, default=_fragment))


def copied(value: Any) -> Any:
    """A copy in which unread lists are unread too."""
    lists: list[tuple[Path, Unread]] = []
    copy = orjson.loads(orjson.dumps(without_lists(value, lists)))
    for path, items in lists:
        if not path:
            return Unread(items)
        parent = copy
        for name in path[:-1]:
            parent = parent[name]
        parent[path[-1]] = Unread(items)
    return copy


def without_lists(value: Any, found: list[tuple[Path, Unread]], path: Path = ()) -> Any:
    """The value with an empty list in the place of each unread one; those are put into `found`, with their paths."""
    if isinstance(value, Unread):
        found.append((path, value))
        return _NOTHING
    if isinstance(value, dict):
        return {name: without_lists(each, found, (*path, name)) for name, each in value.items()}
    return value


_NOTHING: Final[list[Any]] = []


def _fragment(raw: object) -> orjson.Fragment:
    if isinstance(raw, msgspec.Raw):
        return orjson.Fragment(bytes(raw))
    raise TypeError(f"{type(raw).__name__} is no JSON")
