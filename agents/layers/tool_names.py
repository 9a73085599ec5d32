"""Names of tools that every provider takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def naming_problems(names: Iterable[str]) -> list[str]:
    """What is wrong with the names of the tools of one agent, all of it."""
    counted = Counter(names)
    twice = [f"{name!r} is given {times} times" for name, times in counted.items() if times > 1]
    return twice + [f"{name!r} is not 1 to 64 letters, digits, _ and -" for name in counted if not NAME.fullmatch(name)]
