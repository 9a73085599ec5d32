"""Limits only grow, and a budget that is not named stays as it is: what that means for each of them."""

from __future__ import annotations

import msgspec

from dagbok.events.run.amounts import costs_more
from dagbok.events.run.values import Limits

Limit = int | str | None


def asked(now: Limits, wanted: Limits) -> Limits:
    """`wanted`, with the present value where it names none: whoever raises one limit does not lift the budgets."""
    unnamed = {name: getattr(now, name) for name in Limits.__struct_fields__ if getattr(wanted, name) is None}
    return msgspec.structs.replace(wanted, **unnamed)


def lowered(now: Limits, wanted: Limits) -> list[str]:
    """The names of the limits that `wanted` would make smaller."""
    return [name for name in Limits.__struct_fields__ if _is_lower(getattr(wanted, name), getattr(now, name))]


def raised(now: Limits, wanted: Limits) -> Limits:
    """The larger of both, limit by limit; the present one where `wanted` names none."""
    named = asked(now, wanted)
    larger = {name: getattr(now, name) for name in lowered(now, named)}
    return msgspec.structs.replace(named, **larger)


def _is_lower(new: Limit, old: Limit) -> bool:
    if new is None:
        return False
    if old is None:
        return True
    return costs_more(str(old), str(new))
