"""How a message of Pydantic AI is written in the state of a layer: as the library's JSON, without what is not set.

What a message and its parts do not say takes more than half of their bytes. And most fields that a later version of the
library adds are not set in what an earlier one made, so both write the same of it (ADR 18).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

from pydantic import SerializerFunctionWrapHandler, WrapSerializer
from pydantic_ai.messages import ModelMessage, ModelResponse

LIBRARY: Final = version("pydantic-ai-slim")
"""The version of Pydantic AI in this process."""


def without_unset(message: ModelMessage, dumped: dict[str, Any]) -> dict[str, Any]:
    """What a message was dumped as, less the fields in which it, its parts and its usage say nothing: null, zero or
    empty by default. Contents stay as they are: the library proves files in them by digests of how they are written."""
    found = _less(message, dumped)
    found["parts"] = [_less(part, written) for part, written in zip(message.parts, dumped["parts"], strict=True)]
    if isinstance(message, ModelResponse) and dumped.get("usage"):
        found["usage"] = _less(message.usage, dumped["usage"])
    return found


_known: dict[type, Mapping[str, object]] = {}


def _less(said: object, dumped: dict[str, Any]) -> dict[str, Any]:
    kind = type(said)
    if kind not in _known:
        _known[kind] = _empty_defaults(kind)
    unset = _known[kind]
    return {name: value for name, value in dumped.items() if name not in unset or not _is(value, unset[name])}


def _is(value: object, default: object) -> bool:
    return value == default and (value is None) == (default is None)


def _empty_defaults(kind: Any) -> Mapping[str, object]:
    """The fields that are empty where nobody sets them. What tells a class, such as `part_kind`, is not empty."""
    found: dict[str, object] = {}
    for field in dataclasses.fields(kind):
        if field.default_factory is not dataclasses.MISSING:
            made = field.default_factory()
            if isinstance(made, list | dict) and not made:
                found[field.name] = made
        elif field.default is not dataclasses.MISSING and not field.default:
            found[field.name] = field.default
    return MappingProxyType(found)


def _written(message: ModelMessage, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
    return without_unset(message, dump(message))


StoredMessage: TypeAlias = Annotated[ModelMessage, WrapSerializer(_written)]
"""A message that is written so. It is read like any other."""
