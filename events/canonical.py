"""Canonical JSON and hashes: one value has one byte form (`docs/design/messages.md`, section 4).

Sorted keys, UTF-8 in normal form C, no spaces, no NaN or infinity; decimals travel as strings. Integers are those of
64 bits, with or without a sign: whatever is larger is refused, because most readers of JSON would round it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal
from hashlib import sha256
from typing import Final

import orjson

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

Scalar = None | bool | int | float | str
Json = Scalar | list["Json"] | tuple["Json", ...] | dict[str, "Json"]

_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


MAX_DEPTH: Final = 254
"""How deep lists and objects may stand in each other; orjson writes no more."""
LEAST_INTEGER, GREATEST_INTEGER = -(2**63), 2**64 - 1

_DIGITS_AS_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG: Final = b"0" * 19
_LONG_INTEGER: Final = re.compile(rb'(?<![0-9.A-Za-z+"-])-?[0-9]{19,}(?![0-9.A-Za-z"])')
"""Most long runs of digits are in hashes and ids: what may be a token of its own is looked for only behind one."""
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')
_REASONS: Final = {
    "str is not valid UTF-8: surrogates not allowed": "a text holds a lone surrogate (half a character), "
    "which has no UTF-8 form",
    "Integer exceeds 64-bit range": "an integer is beyond 64 bits; write it as a string",
    "Recursion limit reached": f"it is nested more than {MAX_DEPTH} levels deep",
    "Dict key must be str": "a key of an object is no text",
}
"""What orjson says, in the words of whoever wrote the value."""


def canonical(value: object, what: str = "", code: Code = Code.INVALID_OUTCOME) -> bytes:
    """The canonical bytes of a JSON value. Raises `InvalidInput` with `code` for anything that is none, which says
    `what` it was."""
    try:
        encoded = _dump(value)
        # orjson writes NaN and infinity as null, so only a null can hide one.
        if b"null" in encoded:
            _refuse_nan(value)
        if encoded.isascii() or unicodedata.is_normalized("NFC", encoded.decode()):
            return encoded
        return _dump(_normalised(orjson.loads(encoded)))
    except _NotJson as error:
        raise InvalidInput(f"{what or 'this'} is not a JSON value: {error}", code=code) from error.__cause__


def canonical_text(text: bytes) -> bytes:
    """The canonical bytes of a JSON text. Raises `InvalidInput` when it is no JSON, or says an integer that has no
    exact form here."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"not a JSON text: {error}", code=Code.UNDECODABLE) from error
    if _LONG in text.translate(_DIGITS_AS_ZEROS) and _LONG_INTEGER.search(text):
        _refuse_rounded(text)
    return canonical(value)


def digest(value: object) -> str:
    """SHA-256 of the canonical bytes of a JSON value, 64 hex digits."""
    return sha256(canonical(value)).hexdigest()


SHA256: Final = re.compile("[0-9a-f]{64}")
"""A SHA-256 as it is written everywhere: in hex."""


def sha256_hex(data: bytes) -> str:
    """SHA-256 of bytes, 64 hex digits."""
    return sha256(data).hexdigest()


class _NotJson(Exception):
    """Why a value has no JSON form."""


def _dump(value: object) -> bytes:
    try:
        # A copy of its own size: orjson's result keeps a buffer of kilobytes, which matters when many are kept.
        return bytes(memoryview(orjson.dumps(value, default=_decimal, option=_OPTIONS)))
    except (TypeError, RecursionError) as error:
        reason = str(error.__cause__ or error)
        raise _NotJson(_REASONS.get(reason, reason)) from error


def _decimal(value: object) -> str:
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _refuse_nan(value: object) -> None:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise _NotJson("NaN and infinity have no JSON form")
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list | tuple):
            todo.extend(item)


def _refuse_rounded(text: bytes) -> None:
    """A reader of JSON would take a longer integer for a float, without a word."""
    for token in _TOKENS.findall(text):
        if token[0] != 0x22 and token.lstrip(b"-").isdigit() and not _is_exact(token):
            raise InvalidInput(
                f"not a JSON value: the integer {token[:24].decode()} is beyond 64 bits; write it as a string",
                code=Code.INVALID_OUTCOME,
            )


def _is_exact(integer: bytes) -> bool:
    return len(integer) <= 20 and LEAST_INTEGER <= int(integer) <= GREATEST_INTEGER


def _normalised(value: Json) -> Json:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_normalised(item) for item in value]
    if isinstance(value, dict):
        found = {unicodedata.normalize("NFC", key): _normalised(item) for key, item in value.items()}
        if len(found) < len(value):
            raise _NotJson("two keys of an object are the same text in Unicode's normal form C")
        return found
    return value
