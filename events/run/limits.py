"""A limit that stands only grows, one that does not stand yet may be set, and one that is not named stays as it is:
what that means for each of them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dagbok.events.run.amounts import costs_more
from dagbok.events.run.values import Limits


def asked(now: Limits, wanted: Limits, named: Iterable[str] | None = None) -> Limits:
    """The present limits with those of `wanted` that are `named` (none: all of them). One that is none in `wanted`
    stays in any case: whoever raises one limit does not lift the budgets."""
    names = Limits.__struct_fields__ if named is None else named
    changed = {name: value for name in names if (value := getattr(wanted, name)) is not None}
    return msgspec.structs.replace(now, **changed)


def lowered(now: Limits, wanted: Limits) -> list[str]:
    """The names of the limits that stand now and that `wanted` would make smaller."""
    pairs = {name: (getattr(now, name), getattr(wanted, name)) for name in Limits.__struct_fields__}
    return [
        name
        for name, (old, new) in pairs.items()
        if old is not None and new is not None and costs_more(str(old), str(new))
    ]


def raised(now: Limits, wanted: Limits, named: Iterable[str] | None = None) -> Limits:
    """The larger of both, limit by limit, of those that are `named`; that of `wanted` where none stands yet."""
    larger = asked(now, wanted, named)
    return msgspec.structs.replace(larger, **{name: getattr(now, name) for name in lowered(now, larger)})


def changed(now: Limits, then: Limits) -> tuple[str, ...]:
    """The names of the limits that differ."""
    return tuple([name for name in Limits.__struct_fields__ if getattr(now, name) != getattr(then, name)])
