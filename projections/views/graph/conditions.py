"""Conditions on edges as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from dagbok.events.run.values import Comparison, Condition

_SIGNS: Final[dict[Comparison, str]] = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LITERALS: Final = frozenset(("true", "false", "null"))


def readable(conditions: Iterable[Condition]) -> str:
    """`.decision = approve and .score >= 0.8`: all of them, which are on one edge."""
    return " and ".join([_readable(condition) for condition in conditions])


def _readable(condition: Condition) -> str:
    path = "".join([f".{_token(token)}" for token in condition.output.split("/")[1:]])
    compared = _compared(condition.op, [_value(value) for value in condition.values])
    return f"{path} {compared}" if path else compared


def _compared(op: Comparison, values: list[str]) -> str:
    if op == "in" or op == "not_in":
        if len(values) == 1:
            return f"{'=' if op == 'in' else '!='} {values[0]}"
        return f"{'in' if op == 'in' else 'not in'} ({', '.join(values)})"
    return f"{_SIGNS[op]} {', '.join(values)}"


def _token(token: str) -> str:
    """A step of a JSON Pointer (RFC 6901). What would not read as a name or number is quoted."""
    token = token.replace("~1", "/").replace("~0", "~")
    return token if token.isdecimal() or _BARE.fullmatch(token) else _json(token)


def _value(value: msgspec.Raw) -> str:
    """The JSON text; of a text that can be nothing else, the text itself."""
    decoded = msgspec.json.decode(value)
    if isinstance(decoded, str):
        return decoded if _BARE.fullmatch(decoded) and decoded not in _LITERALS else _json(decoded)
    return str(value, "utf-8")


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()
