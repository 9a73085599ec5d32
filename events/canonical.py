"""Canonical JSON and hashes: one value has one byte form (`docs/design/messages.md`, section 4).

Sorted keys, UTF-8 in normal form C, no spaces, no NaN or infinity; decimals travel as strings.
"""

from __future__ import annotations

import math
import unicodedata
from decimal import Decimal
from hashlib import sha256

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


def canonical(value: object) -> bytes:
    """The canonical bytes of a JSON value. Raises `InvalidInput` (`invalid_outcome`) for anything that is none."""
    encoded = _dump(value)
    # orjson writes NaN and infinity as null, so only a null can hide one.
    if b"null" in encoded:
        _refuse_nan(value)
    if encoded.isascii() or unicodedata.is_normalized("NFC", encoded.decode()):
        return encoded
    return _dump(_normalised(orjson.loads(encoded)))


def canonical_text(text: bytes) -> bytes:
    """The canonical bytes of a JSON text. Raises `InvalidInput` when it is no JSON."""
    try:
        return canonical(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"not a JSON text: {error}", code=Code.UNDECODABLE) from error


def digest(value: object) -> str:
    """SHA-256 of the canonical bytes of a JSON value, 64 hex digits."""
    return sha256(canonical(value)).hexdigest()


def sha256_hex(data: bytes) -> str:
    """SHA-256 of bytes, 64 hex digits."""
    return sha256(data).hexdigest()


def _dump(value: object) -> bytes:
    try:
        # A copy of its own size: orjson's result keeps a buffer of kilobytes, which matters when many are kept.
        return bytes(memoryview(orjson.dumps(value, default=_decimal, option=_OPTIONS)))
    except (TypeError, RecursionError) as error:
        reason = str(error.__cause__ or error)
        raise InvalidInput(f"not a JSON value: {reason}", code=Code.INVALID_OUTCOME) from error


def _decimal(value: object) -> str:
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _refuse_nan(value: object) -> None:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise InvalidInput("not a JSON value: NaN and infinity have no JSON form", code=Code.INVALID_OUTCOME)
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list | tuple):
            todo.extend(item)


def _normalised(value: Json) -> Json:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_normalised(item) for item in value]
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", key): _normalised(item) for key, item in value.items()}
    return value
