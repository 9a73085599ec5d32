"""Artifacts as workers and verifiers see them: by task and name, fetched when their bytes are first asked for.

JSON values are `Any` here, as in the standard library: their shape is known to the author of the task alone. `read`
gives them a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec
import orjson

from dagbok.events.envelope import Input
from dagbok.events.run.values import ArtifactRef

T = TypeVar("T")

NAMED: Final = 10

ReadArtifact = Callable[[Input], bytes]
"""Gives the bytes of an artifact that the dispatch names, proven by hash and length. Blocks; any thread."""


class ArtifactView:
    """An artifact that may be read: `json()`, `text()`, `data()`. Bytes are fetched when they are first asked for."""

    def __init__(self, item: Input, read: ReadArtifact) -> None:
        self._item, self._read = item, read

    @property
    def task(self) -> str:
        """The task that made it."""
        return self._item.task

    @property
    def ref(self) -> ArtifactRef:
        """Name, SHA-256, size and media type."""
        return self._item.ref

    @property
    def name(self) -> str:
        """`result`, unless it was named otherwise."""
        return self._item.ref.name

    def data(self) -> bytes:
        """The bytes. Raises `ArtifactDamaged` or `ArtifactNotFound`."""
        return self._data

    def text(self) -> str:
        """The bytes as UTF-8."""
        return self._data.decode()

    def json(self) -> Any:
        """The JSON value. `read` gives it with a type."""
        return orjson.loads(self._data)

    def read(self, type: type[T]) -> T:
        """The JSON value as `type` (whatever msgspec decodes: dataclasses, structs, TypedDicts, builtins).

        Raises `msgspec.ValidationError` when it does not fit.
        """
        return msgspec.json.decode(self._data, type=type)

    @cached_property
    def _data(self) -> bytes:
        return self._read(self._item)


class Artifacts(Mapping[str, ArtifactView]):
    """The artifacts of one task by name."""

    def __init__(self, views: Mapping[str, ArtifactView]) -> None:
        self._views = views

    def __getitem__(self, name: str) -> ArtifactView:
        try:
            return self._views[name]
        except KeyError:
            raise _not_there(f"artifact {name!r}", self._views) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def json(self, name: str = "result") -> Any:
        """The JSON value of one of them."""
        return self[name].json()

    def read(self, type: type[T], name: str = "result") -> T:
        """The JSON value of one of them, as `type`: see `ArtifactView.read`."""
        return self[name].read(type)

    def text(self, name: str = "result") -> str:
        """The text of one of them."""
        return self[name].text()

    def data(self, name: str = "result") -> bytes:
        """The bytes of one of them."""
        return self[name].data()


class Dependencies(Mapping[str, Artifacts]):
    """The artifacts of tasks, by the task that made them; also under the name of a task whose place it took."""

    def __init__(self, found: Mapping[str, Artifacts], renamed: Mapping[str, str]) -> None:
        self._found, self._renamed = found, renamed

    def __getitem__(self, task: str) -> Artifacts:
        try:
            return self._found[self._renamed.get(task, task)]
        except KeyError:
            raise _not_there(f"dependency {task!r}", self._found) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _not_there(what: str, known: Mapping[str, object]) -> KeyError:
    """With what is there: whoever reads the failure of a task has nothing but its text."""
    names = ", ".join(map(repr, islice(known, NAMED))) or "none"
    more = f" and {len(known) - NAMED} more" if len(known) > NAMED else ""
    return KeyError(f"no {what}; there are: {names}{more}")
