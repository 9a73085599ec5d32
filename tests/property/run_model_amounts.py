"""The model's word on budgets: tokens and cost, side by side."""

from __future__ import annotations

from decimal import Decimal

from dagbok.events.run.values import Spec, Usage

Amount = tuple[int, Decimal]
NOTHING: Amount = (0, Decimal(0))


def reservation(spec: Spec) -> Amount:
    """What a work attempt at the task reserves."""
    return NOTHING if spec.limits is None else (spec.limits.tokens, Decimal(spec.limits.cost))


def amount(usage: Usage) -> Amount:
    """As numbers."""
    return usage.tokens, Decimal(usage.cost)


def total(*amounts: Amount) -> Amount:
    """All together."""
    return sum([tokens for tokens, _ in amounts]), sum([cost for _, cost in amounts], Decimal(0))
