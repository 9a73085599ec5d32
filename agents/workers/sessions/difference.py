"""What has to change for one JSON value to become another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any
from unicodedata import normalize

from dagbok.agents.workers.sessions.operations import Cut, Drop, Operation, add, put
from dagbok.agents.workers.sessions.unread import Path
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput


def difference(before: Any, after: Any, path: Path = ()) -> Iterator[Operation]:
    """Operations that make `after` of `before`; none when they are the same. A list that only grew costs what is new
    in it. Raises `InvalidInput` for two keys that a session cannot tell apart."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() - after.keys():
            yield Drop((*path, name))
        _keep_apart(after, after.keys() - before.keys(), path)
        for name, value in after.items():
            if name in before:
                yield from difference(before[name], value, (*path, name))
            else:
                yield put((*path, name), value)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    elif not same(before, after):
        yield put(path, after)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, which 1, 1.0 and true are not."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _keep_apart(after: Mapping[str, Any], new: Collection[str], path: Path) -> None:
    """A session has keys in normal form C: two that are one there would take each other's place without a word."""
    if not all(map(str.isascii, new)) and len({normalize("NFC", name) for name in after}) < len(after):
        where = f"the object at {'/'.join(path)}" if path else "the session"
        said = f"{where} has two keys that are the same text in Unicode's normal form C"
        raise InvalidInput(said, code=Code.INVALID_OUTCOME)


def _of_lists(before: list[Any], after: list[Any], path: Path) -> Iterator[Operation]:
    common = 0
    for one, other in zip(before, after, strict=False):
        if not same(one, other):
            break
        common += 1
    if common < len(before):
        yield Cut(path, common)
    if common < len(after):
        yield add(path, after[common:])
