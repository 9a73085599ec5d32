"""A list in the state of a layer that is appended to, and whose old items cost nothing until somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any, Generic, TypeVar, get_args, overload

import msgspec
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")


class Growing(MutableSequence[T], Generic[T]):
    """A list for a field of a state: `messages: Growing[Message] = Field(default_factory=Growing)`.

    Where a session has it as JSON, an item is validated when it is looked at, so what an old item raises (pydantic's
    ValidationError) it raises then. Validators of the model see the list empty when a session is resumed. An item that
    was appended is not changed any more; putting another one in its place is fine.
    """

    __slots__ = ("_items", "_read", "valid", "written")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: list[T | msgspec.Raw] = list(items)
        self._read: Callable[[bytes], list[T]] | None = None
        self.valid = 0
        """So many of the first items are known to be valid as JSON."""
        self.written = 0
        """So many of the first items the session has as they are."""

    @property
    def unread(self) -> int:
        """How many items are JSON that nobody has looked at."""
        return sum(isinstance(item, msgspec.Raw) for item in self._items)

    def fill(self, items: Iterable[msgspec.Raw], read: Callable[[bytes], list[T]]) -> None:
        """Take what a session has in place of all; `read` makes items of a JSON array."""
        self._items, self._read = list(items), read
        self.valid = self.written = len(self._items)

    def having(self, word: str) -> Iterator[tuple[int, T]]:
        """Items with their places, in order, without unread ones whose JSON lacks a word (ASCII, as JSON writes it)."""
        sought = word.encode()
        for at, item in enumerate(self._items):
            if not isinstance(item, msgspec.Raw) or sought in bytes(item):
                yield at, self[at]

    def frozen(self) -> tuple[T | msgspec.Raw, ...]:
        """The items as they are now, those that nobody has looked at as JSON."""
        return tuple(self._items)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> list[T]: ...

    def __getitem__(self, at: int | slice) -> T | list[T]:
        found = self._items[at]
        if isinstance(at, slice):
            places = range(*at.indices(len(self._items)))
            return self._looked_at(places)
        return self._looked_at([at])[0] if isinstance(found, msgspec.Raw) else found  # type: ignore[return-value]

    def __setitem__(self, at: Any, item: Any) -> None:
        self._change(at)
        self._items[at] = item

    def __delitem__(self, at: int | slice) -> None:
        self._change(at)
        del self._items[at]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Growing | list | tuple) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Growing({len(self)} items, {self.unread} of them unread)"

    def insert(self, at: int, item: T) -> None:
        self._change(slice(at, None))
        self._items.insert(at, item)

    def extend(self, items: Iterable[T]) -> None:
        self._items.extend(items)

    def clear(self) -> None:
        self._change(slice(None))
        self._items.clear()

    def _change(self, at: int | slice) -> None:
        length = len(self._items)
        if isinstance(at, slice):  # an empty one may still be a place where something is put in
            first = min([at.indices(length)[0], *range(*at.indices(length))])
        else:
            first = at + length if at < 0 else at
        self.valid, self.written = min(self.valid, first), min(self.written, first)

    def _looked_at(self, places: Iterable[int]) -> list[T]:
        """All unread ones of the places are read at once."""
        places = list(places)
        unread = [at for at in places if isinstance(self._items[at], msgspec.Raw)]
        if unread and self._read is not None:
            json = b",".join([bytes(self._items[at]) for at in unread])  # type: ignore[arg-type]
            for at, item in zip(unread, self._read(b"[%b]" % json), strict=True):
                self._items[at] = item
        return [self._items[at] for at in places]  # type: ignore[misc]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        items = handler.generate_schema(list[get_args(source)[0] if get_args(source) else Any])  # type: ignore[misc]
        as_list = core_schema.no_info_before_validator_function(_listed, items)
        written = core_schema.plain_serializer_function_ser_schema(list, return_schema=items)
        return core_schema.no_info_after_validator_function(cls, as_list, serialization=written)


def _listed(value: object) -> object:
    return list(value) if isinstance(value, Growing) else value
