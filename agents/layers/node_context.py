"""What a factory may know of the node that it makes a layer for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import JsonValue


class NodeContext:
    """The name of a node, and its metadata as plain JSON. It cannot be changed."""

    __slots__ = ("_metadata", "_name")

    def __init__(self, name: str, metadata: Mapping[str, JsonValue]) -> None:
        """Copy what is given: later changes of it are not seen."""
        self._name, self._metadata = name, _plain(metadata)

    @property
    def name(self) -> str:
        """The name of the node."""
        return self._name

    @property
    def metadata(self) -> dict[str, JsonValue]:
        """A copy for each reader, who may change it: nobody else sees that."""
        return cast("dict[str, JsonValue]", _plain(self._metadata))

    def __repr__(self) -> str:
        return f"NodeContext({self._name!r}, {self._metadata!r})"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
