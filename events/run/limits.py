"""Limits only grow: what that means for each of them."""

from __future__ import annotations

import msgspec

from dagbok.events.run.amounts import costs_more
from dagbok.events.run.values import Limits

Limit = int | str | None


def lowered(now: Limits, wanted: Limits) -> list[str]:
    """The names of the limits that `wanted` would make smaller."""
    return [name for name in Limits.__struct_fields__ if _is_lower(getattr(wanted, name), getattr(now, name))]


def raised(now: Limits, wanted: Limits) -> Limits:
    """The larger of both, limit by limit."""
    larger = {name: getattr(now, name) for name in lowered(now, wanted)}
    return msgspec.structs.replace(wanted, **larger)


def _is_lower(new: Limit, old: Limit) -> bool:
    if new is None:
        return False
    if old is None:
        return True
    return costs_more(str(old), str(new))
