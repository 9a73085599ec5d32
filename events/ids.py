"""Identifiers: how they look, how they are derived, and which partition a stream lives on (`messages.md`, 1 and 4).

Derived ids make commands repeatable: whoever sends the same command again names the same things.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import Final

from dagbok.events.canonical import canonical
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

ID_PATTERN: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
ZERO_HASH: Final = "0" * 64


def check_id(kind: str, value: str) -> str:
    """Return `value` when it is a valid id; raises `InvalidInput` naming the `kind` otherwise."""
    if not isinstance(value, str):
        raise InvalidInput(f"{kind} is no text, but of the type {type(value).__name__}", code=Code.INVALID_SPEC)
    if ID_PATTERN.fullmatch(value) is None:
        raise InvalidInput(
            f"{kind} {value[:140]!r} is not 1 to 128 of the characters A-Z a-z 0-9 . _ -", code=Code.INVALID_SPEC
        )
    return value


def derive(*parts: str | int) -> str:
    """32 hex digits from the parts; different parts give different ids."""
    return sha256(canonical(parts)).hexdigest()[:32]


def run_id(tenant: str, project: str, key: str) -> str:
    """The run that an idempotency key names in a project of a tenant."""
    return derive("run", tenant, project, key)


def run_stream(run: str) -> str:
    """The stream of a run."""
    return "run:" + run


@lru_cache(1024)
def partition_of(stream: str, partitions: int) -> int:
    """The partition of a stream: first 8 bytes of SHA-256, big-endian, modulo the count. Fixed for ever."""
    return int.from_bytes(sha256(stream.encode()).digest()[:8], "big") % partitions
