"""How the JSON value of a session changes, and the form in which a part of it is written.

A part is `{"v":1,"ops":[…]}`; applied in order to nothing, the operations of all parts give the value. A path leads
through the members of objects: `["layers","history"]`; the empty one is the whole value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from unicodedata import normalize

import msgspec
import orjson

from dagbok.agents.workers.sessions.unread import Path, Unread, read, without_lists
from dagbok.events.canonical import canonical
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

PART_VERSION: Final = 1


class _Change(msgspec.Struct, frozen=True, array_like=True):
    """Names of a path are in normal form C, however they come: those of the value are (`canonical`)."""

    path: Path

    def __post_init__(self) -> None:
        if not all(map(str.isascii, self.path)):
            msgspec.structs.force_setattr(self, "path", tuple([normalize("NFC", name) for name in self.path]))


class Put(_Change, frozen=True, array_like=True, tag="put"):
    """What is at the path is this now."""

    value: msgspec.Raw


class Add(_Change, frozen=True, array_like=True, tag="add"):
    """The list at the path has these items more, at its end."""

    items: tuple[msgspec.Raw, ...]


class Cut(_Change, frozen=True, array_like=True, tag="cut"):
    """The list at the path has only its first `length` items."""

    length: int


class Drop(_Change, frozen=True, array_like=True, tag="drop"):
    """The member at the path is gone."""


Operation = Put | Add | Cut | Drop


class _Part(msgspec.Struct, frozen=True):
    v: int
    ops: tuple[Operation, ...]


_decode: Final = msgspec.json.Decoder(_Part).decode


def put(path: Path, value: object) -> Put:
    """Raises `InvalidInput` (`invalid_outcome`) for what is no JSON value."""
    return Put(path, _raw(value))


def add(path: Path, items: Iterable[object]) -> Add:
    """Raises `InvalidInput` (`invalid_outcome`) for what is no JSON value."""
    return Add(path, tuple([_raw(item) for item in items]))


def encode_part(operations: Sequence[Operation]) -> bytes:
    """The bytes of a part."""
    return msgspec.json.encode(_Part(PART_VERSION, tuple(joined(operations))))


def decode_part(data: bytes) -> tuple[Operation, ...]:
    """Raises `InvalidInput`: `undecodable`, or `unsupported` for a part of a later version."""
    try:
        part = _decode(data)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"this is no part of a session: {error}", code=Code.UNDECODABLE) from error
    if part.v != PART_VERSION:
        raise InvalidInput(f"a part of version {part.v}; this process knows {PART_VERSION}", code=Code.UNSUPPORTED)
    return part.ops


def whole(value: Any) -> tuple[Operation, ...]:
    """Operations that make a value of nothing. Unread lists are written as they are, without being read.

    Raises `InvalidInput` (`invalid_outcome`) for what is no JSON value."""
    lists: list[tuple[Path, Unread]] = []
    put_first = put((), without_lists(value, lists))
    return (put_first, *(Add(path, tuple(items)) for path, items in lists if items))


def apply(value: Any, operations: Iterable[Operation], *, unread: bool = False) -> Any:
    """The value after the operations; lists and objects of `value` are changed in place. `unread`: a list that is added
    to becomes an `Unread`.

    Raises `InvalidInput` (`undecodable`) where a path leads nowhere."""
    try:
        for operation in operations:
            value = _applied(value, operation, unread)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"a change of a session leads nowhere: {error!r}", code=Code.UNDECODABLE) from error
    return value


def value_of(parts: Iterable[bytes]) -> Any:
    """The value that parts give, in their order. Raises what `decode_part` and `apply` raise."""
    return read(unread_value_of(parts))


def unread_value_of(parts: Iterable[bytes]) -> Any:
    """The same with lists that were added to as `Unread`."""
    return built(map(decode_part, parts), unread=True)


def built(parts: Iterable[Iterable[Operation]], *, unread: bool) -> Any:
    """The same of parts that are decoded already; `unread` as for `apply`. Raises what `apply` raises."""
    value: Any = None
    for operations in parts:
        value = apply(value, operations, unread=unread)
    return value


def joined(operations: Iterable[Operation]) -> list[Operation]:
    """The same changes in fewer operations: what is put in the place of everything makes all before it idle, and what
    is added to one list at one time after the other is added at once."""
    found: list[Operation] = []
    for operation in operations:
        last = found[-1] if found else None
        if isinstance(operation, Put) and not operation.path:
            found = [operation]
        elif isinstance(operation, Add) and isinstance(last, Add) and last.path == operation.path:
            found[-1] = Add(last.path, last.items + operation.items)
        else:
            found.append(operation)
    return found


def _applied(value: Any, operation: Operation, unread: bool) -> Any:
    if not operation.path:
        return _at(value, operation, unread)
    parent = value
    for name in operation.path[:-1]:
        parent = parent[name]
    name = operation.path[-1]
    if isinstance(operation, Drop):
        del parent[name]
    elif isinstance(operation, Put):
        parent[name] = _loads(operation.value)
    else:
        parent[name] = _at(parent[name], operation, unread)
    return value


def _at(value: Any, operation: Operation, unread: bool) -> Any:
    if isinstance(operation, Put):
        return _loads(operation.value)
    if isinstance(operation, Add):
        return _added(value, operation, unread)
    if isinstance(operation, Cut):
        del value[operation.length :]
        return value
    return None


def _added(value: Any, operation: Add, unread: bool) -> Any:
    if unread and type(value) is list:
        value = Unread(map(_raw, value))
    value.extend(operation.items if isinstance(value, Unread) else map(_loads, operation.items))
    return value


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(canonical(value, "what a session keeps"))


def _loads(raw: msgspec.Raw) -> Any:
    return orjson.loads(bytes(raw))
