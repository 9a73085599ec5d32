"""What somebody may have meant by a name that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Final

MOST: Final = 2_000
"""Of so many names the nearest is looked for: a long list is not searched with every mistake."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'review'?`, to stand behind what is said of the name; empty when nothing is near."""
    near = difflib.get_close_matches(name, islice(known, MOST), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
