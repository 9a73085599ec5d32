"""The loose header `traceparent`: in whose trace, and below which span, a record was written. The form is that of the
W3C recommendation *Trace Context*, level 1. It decides nothing."""

from __future__ import annotations

import re
from typing import Final

import msgspec

TRACEPARENT: Final = "traceparent"

_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_MAX_CHARS: Final = 512


class Parent(msgspec.Struct, frozen=True, gc=False):
    """A span, by its ids: 128 and 64 bits, neither is 0. `sampled`: whether it is recorded where it runs."""

    trace_id: int
    span_id: int
    sampled: bool

    def told(self) -> str:
        """As the header has it."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{'01' if self.sampled else '00'}"


def read_traceparent(text: str | None) -> Parent | None:
    """What the header names; none when there is none, or it is not well-formed. Of a later version than 00 what is
    behind the flags is passed over, as the recommendation says."""
    form = None if text is None or len(text) > _MAX_CHARS else _FORM.fullmatch(text)
    if form is None:
        return None
    version, trace, span, flags, more = form.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    trace_id, span_id = int(trace, 16), int(span, 16)
    return Parent(trace_id, span_id, bool(int(flags, 16) & 1)) if trace_id and span_id else None


def passed_on(text: str | None) -> str | None:
    """What of a header that anybody may have written is written on: what it names, in the form of version 00."""
    parent = read_traceparent(text)
    return None if parent is None else parent.told()
