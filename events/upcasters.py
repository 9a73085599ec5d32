"""Old events read as new ones: pure functions from the data of version n to that of version n + 1, chained on read.

The log is never rewritten. An upcaster is registered with the class that brings the new version, and the golden logs in
`tests/golden/` keep one record of every version that was ever released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from dagbok.events.canonical import Json

Upcaster = Callable[[dict[str, Json]], dict[str, Json]]
"""Takes the `data` of an event and returns that of the next version; must not depend on anything else."""

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""From (event type, version it reads) to the step. Empty while every type is at version 1."""


def upcast(
    type_name: str, version: int, current: int, data: bytes, steps: Mapping[tuple[str, int], Upcaster] = UPCASTERS
) -> bytes:
    """The JSON of `data` at version `current`. Raises `KeyError` when a step of the chain is missing."""
    value: dict[str, Json] = orjson.loads(data)
    for step in range(version, current):
        value = steps[type_name, step](value)
    return orjson.dumps(value)
