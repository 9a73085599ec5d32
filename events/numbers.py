"""Numbers as people write them: of the type that they are, and exact. True is no count, nor is the text "5"; and a
binary fraction is no amount of money, since 0.1 + 0.2 is none that anybody meant."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator, Strict

MAX_COUNT: Final = 2**53
"""Counts up to here are exact wherever the log is read: in JSON of any language, and in the tables."""
_EXACT, _SMALLEST = Context(prec=36), Decimal("1e-18")


def exact_cost(value: object) -> str:
    """An amount in its one form: digits, and a point where it has a fraction. Raises `ValueError` for what is no
    decimal number, not negative, with up to 18 digits before the point and 18 behind it."""
    if isinstance(value, float):
        raise ValueError(f"a float is not exact: write it as text, {str(value)!r}, or as a Decimal")
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise ValueError("no decimal number: write text, a Decimal or an integer")
    try:
        amount = Decimal(value)
    except ArithmeticError:
        raise ValueError("no decimal number") from None
    if not amount.is_finite() or not 0 <= amount < 10**18:
        raise ValueError("not within 0 and 10**18")
    exact = amount.quantize(_SMALLEST, context=_EXACT)
    if exact != amount:
        raise ValueError("more than 18 digits behind the point")
    return format(exact.copy_abs().normalize(_EXACT), "f")


Cost = Annotated[Decimal | int | str, BeforeValidator(exact_cost)]
"""Not a float. Checked, it is text."""
Integer = Annotated[int, Strict()]
Seconds = Annotated[float, Strict()]
"""An integer will do."""
