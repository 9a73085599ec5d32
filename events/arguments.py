"""Arguments of public functions, checked where they are given. What no run could use is `InvalidInput` (`usage`) with
the name of the argument, and never an error of Python's from somewhere inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dagbok.events.canonical import canonical
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.numbers import MAX_COUNT

T = TypeVar("T")
SHOWN_CHARS = 140


def text(name: str, value: object) -> str:
    """A text that any log can keep. Raises `InvalidInput` (`usage`) for anything else."""
    if not isinstance(value, str):
        raise wrong(name, value, "give it as text")
    if not value.isascii():
        canonical(value, name, Code.USAGE)  # refuses surrogates
    return value


def whole(name: str, value: object, *, least: int = 0, most: int = MAX_COUNT) -> int:
    """A whole number from `least` to `most`; True is none. Raises `InvalidInput` (`usage`) for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise wrong(name, value, f"give a whole number from {least}" + (f" to {most}" if most < MAX_COUNT else ""))
    return value


def number(name: str, value: object, *, advice: str) -> float:
    """A number, not negative; True and "3" are none. Raises `InvalidInput` (`usage`) with `advice` for anything
    else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise wrong(name, value, advice)
    return value


def one_of(name: str, value: object, words: Sequence[str]) -> None:
    """Raises `InvalidInput` (`usage`) when it is none of these words."""
    if not isinstance(value, str) or value not in words:
        raise wrong(name, value, f"give one of: {', '.join(words)}")


def typed(name: str, value: object, kind: type[T] | tuple[type[T], ...]) -> T:
    """A value of this class, or of one of these. Raises `InvalidInput` (`usage`) for anything else."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise wrong(name, value, f"give a {' or a '.join(each.__name__ for each in kinds)}")
    return value


def wrong(name: str, value: object, advice: str) -> InvalidInput:
    """The error for an argument that cannot be used."""
    try:
        shown = repr(value)
    except Exception:  # of an object of the caller's, or of an integer with too many digits
        shown = f"an object of {type(value).__qualname__}"
    if len(shown) > SHOWN_CHARS:
        shown = shown[:SHOWN_CHARS] + "…"
    return InvalidInput(f"{name} cannot be {shown}", code=Code.USAGE, advice=advice)
