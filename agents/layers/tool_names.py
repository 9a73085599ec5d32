"""Names of tools: which ones every provider of models takes, and that each is given once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_tool_names(tools: Iterable[object]) -> None:
    """Refuse names before an agent is made of them, as all providers would later, each with words of its own.

    Args:
        tools: Functions, or objects that have a `name`; also tagged ones. What has no name is not checked.

    Raises:
        ValueError: A name is given twice, or is not 1 to 64 letters, digits, _ and -. All such names are told.
    """
    counted = Counter(_names(tools))
    twice = [f"{name!r} is given {times} times" for name, times in counted.items() if times > 1]
    refused = [f"{name!r} is not 1 to 64 letters, digits, _ and -" for name in counted if not NAME.fullmatch(name)]
    if twice or refused:
        raise ValueError(f"Tools cannot be named so: {'; '.join(twice + refused)}")


def _names(tools: Iterable[object]) -> Iterator[str]:
    for tool in tools:
        value = getattr(tool, "value", tool)
        name = getattr(value, "name", None) or getattr(value, "__name__", None)
        if isinstance(name, str):
            yield name
