"""Strategies for values and commands: of any content that their types allow, and nearly right ones.

What a type allows is taken from its hints, so that a new field or command is tried without anybody remembering it.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from dagbok.events.run.commands import RUN_COMMANDS, RunCommand
from dagbok.events.run.values import Claim

WORDS = (
    "t0", "t1", "t2", "check", "judge", "structure", "p1", "p2", "n1", "null", "", " ", "\x00", "..", "ü", "x" * 300,
)  # fmt: skip
NUMBERS = (-1, 0, 1, 2, 3, 1_000, 60_000, 2**31, 2**53, 2**53 + 1, 2**63, 2**64, 10**40)
RAWS = (
    b"null", b"1", b'{"b":1,"a":[null]}', b'"e\xcc\x81"',
    b"1e999", b"-0.0", b"123456789012345678901234567890", b'"\\ud800"', b'"\xff"', b"[" * 300 + b"]" * 300,
)  # fmt: skip

texts = st.sampled_from(WORDS) | st.text(max_size=20)
numbers = st.sampled_from(NUMBERS) | st.integers()
claims = st.builds(Claim, st.sampled_from(("p1", "p2")), st.integers(1, 2), st.just("n1"))

_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: numbers,
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    NoneType: st.none(),
    msgspec.Raw: st.sampled_from(RAWS).map(msgspec.Raw),
    Claim: claims,
}

S = TypeVar("S", bound=msgspec.Struct)


def _hints(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(struct)
    return {name: hints[name] for name in struct.__struct_fields__}


def any_of(struct: type[S]) -> st.SearchStrategy[S]:
    """Instances of a struct with any values that its hints allow."""
    return st.builds(struct, **{name: any_value(hint) for name, hint in _hints(struct).items()})


@cache
def any_value(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that stands inside a command. Raises `TypeError` for a type that it does not know yet."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, UnionType):
        return st.one_of([any_value(arg) for arg in args])
    if origin is tuple:
        if args[-1] is ...:
            return st.lists(any_value(args[0]), max_size=3).map(tuple)
        return st.tuples(*[any_value(arg) for arg in args])
    if origin is dict:
        return st.dictionaries(any_value(args[0]), any_value(args[1]), max_size=3)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return any_of(hint)
    raise TypeError(f"no strategy for {hint}")


any_command: st.SearchStrategy[RunCommand] = st.one_of([any_of(command) for command in RUN_COMMANDS.values()])
"""A command of any content that its types allow."""


@st.composite
def nearly(draw: st.DrawFn, command: S) -> S:
    """The command with one value changed, at any depth."""
    name = draw(st.sampled_from(command.__struct_fields__))
    value = getattr(command, name)
    if isinstance(value, msgspec.Struct) and draw(st.booleans()):
        return msgspec.structs.replace(command, **{name: draw(nearly(value))})
    return msgspec.structs.replace(command, **{name: draw(any_value(_hints(type(command))[name]))})
