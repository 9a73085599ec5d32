"""Texts that snapshots and sessions can have."""

from __future__ import annotations


def is_text(value: object) -> bool:
    """Whether it is a text with a UTF-8 form, which half a character (a lone surrogate) has not."""
    return isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)
