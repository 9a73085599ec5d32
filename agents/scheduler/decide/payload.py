"""JSON that passes through a decider unread: brought to its one form, so that whoever reads the log later can rely on
it."""

from __future__ import annotations

import re

import msgspec

from dagbok.events.canonical import canonical_text
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, Refused
from dagbok.events.run.values import NULL, Decompose, Spec, Usage

MAX_NUMBER = 2**53
"""Counts and milliseconds up to here are exact wherever the log is read: in JSON of any language, and in the tables."""
_COST = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


def canonical_payload(what: str, text: msgspec.Raw, code: Code = Code.INVALID_OUTCOME) -> msgspec.Raw:
    """The payload in canonical form. Raises `Refused` with `code` when it is no JSON value."""
    # Raw of a decoded command is a view into the whole message: the copy lets go of it.
    data = bytes(text)
    if data == b"null":
        return NULL
    try:
        return msgspec.Raw(canonical_text(data))
    except DagbokError as error:
        raise Refused(code, f"{what}: {error.message}") from error


def is_cost(text: str) -> bool:
    """A decimal number, not negative, up to 18 digits before the point and 18 behind it."""
    return _COST.fullmatch(text) is not None


def check_usage(usage: Usage) -> None:
    """What is said to be used can be added up. Raises `Refused` (`invalid_outcome`)."""
    if not 0 <= usage.tokens <= MAX_NUMBER:
        raise Refused(Code.INVALID_OUTCOME, f"tokens used: {usage.tokens}")
    if not is_cost(usage.cost):
        raise Refused(Code.INVALID_OUTCOME, f"the cost is no decimal number: {usage.cost[:40]!r}")


def readable(proposal: Decompose) -> Decompose:
    """The proposal as it may be recorded when it is refused: without the payloads that are no JSON values."""
    return msgspec.structs.replace(proposal, tasks=tuple([_readable_spec(spec) for spec in proposal.tasks]))


def _readable_spec(spec: Spec) -> Spec:
    return msgspec.structs.replace(
        spec, contract=_or_null(spec.contract), inputs=_or_null(spec.inputs), metadata=_or_null(spec.metadata)
    )


def _or_null(text: msgspec.Raw) -> msgspec.Raw:
    try:
        return canonical_payload("", text)
    except Refused:
        return NULL
