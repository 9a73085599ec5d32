"""What a look from outside says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

State = Literal["ok", "warning", "failed"]

Commands = Callable[..., str]
"""A command of dagbok to advise, of its words: with the options that it needs where the advice is read."""


class Finding(msgspec.Struct, frozen=True):
    """One check: of `what`, how it stands, in words. `numbers`: what was measured, by name; `about`: whose it is, by
    name (`partition`, `tenant`, `project`, `run`, `task`, `pool`, `kind`, `key`)."""

    what: str
    state: State
    told: str
    advice: str = ""
    numbers: Mapping[str, float] = {}
    about: Mapping[str, str | int] = {}


def plain(*words: str) -> str:
    """`dagbok topics create`: a command without any option for its place."""
    return " ".join(["dagbok", *words])


def plural(count: int, what: str) -> str:
    """`1 attempt`, `2 attempts`, `3 processes`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}{'es' if what.endswith('s') else 's'}"
