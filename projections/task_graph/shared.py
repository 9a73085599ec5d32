"""One string for equal strings, where a run keeps the same few words for each of its tasks."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

LONGEST: Final = 256


def shared(text: str) -> str:
    """The first string that was equal to `text`: keys, pools, names of artifacts and media types. Each decoded message
    brings its own copy of them, which a run of 100,000 tasks would keep as often. What is long is left alone."""
    return _first(text) if len(text) <= LONGEST else text


@lru_cache(4096)
def _first(text: str) -> str:
    return text
