"""Sums of what attempts use: tokens, and costs as exact decimal numbers in text."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Final

from dagbok.events.run.values import Usage

NOTHING: Final = Usage()
_EXACT = Context(prec=60)
"""Costs have up to 18 digits before the point and 18 behind it: sums of 10**24 of them are exact."""
MAX_TOKENS: Final = 2**63 - 1
"""Sums of tokens end here, where no table and no snapshot could hold more. A worker may report what it likes."""


def plus(used: Usage, more: Usage) -> Usage:
    """Both together."""
    if not more.tokens and more.cost == "0":
        return used
    return Usage(min(used.tokens + more.tokens, MAX_TOKENS), _text(_EXACT.add(Decimal(used.cost), Decimal(more.cost))))


def minus(used: Usage, less: Usage) -> Usage:
    """The first without the second, which is a part of it."""
    if not less.tokens and less.cost == "0":
        return used
    return Usage(max(used.tokens - less.tokens, 0), _text(_EXACT.subtract(Decimal(used.cost), Decimal(less.cost))))


def costs_more(cost: str, limit: str) -> bool:
    """Whether one cost is above another."""
    return Decimal(cost) > Decimal(limit)


def _text(amount: Decimal) -> str:
    return format(amount.normalize(_EXACT), "f")
