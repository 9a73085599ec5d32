"""The docstrings of `Dagbok` say what every parameter means, and which errors there are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

from dagbok import Dagbok

METHODS = sorted(name for name in dir(Dagbok) if not name.startswith("_") and callable(getattr(Dagbok, name)))
EVERYWHERE = {"self", "run", "task", "tenant", "project", "reason", "note", "changes", "definitions", "folder"}
"""The classes say what these are, or their names do."""


def _doc(name: str) -> str:
    """What a method says of itself, with what it refers to: `run` to `start`, `amend` to `start`."""
    said = inspect.getdoc(getattr(Dagbok, name)) or ""
    refers = name == "run" or "`Dagbok.start`" in said
    return said + (inspect.getdoc(Dagbok.start) or "" if refers else "")


def _own_class(name: str) -> type:
    return next(cls for cls in Dagbok.__mro__ if name in vars(cls))


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_is_explained(name: str) -> None:
    method: Callable[..., object] = getattr(Dagbok, name)
    parameters = set(inspect.signature(method).parameters) - EVERYWHERE
    assert [one for one in sorted(parameters) if not re.search(rf"`?\b{one}\b", _doc(name))] == []


@pytest.mark.parametrize("name", METHODS)
def test_errors_are_named(name: str) -> None:
    if name == "status":
        return  # it answers None
    said = f"{_doc(name)} {inspect.getdoc(_own_class(name))}"
    assert re.search(r"\b[Rr]aises?\b|\bRefused\b", said)


@pytest.mark.parametrize("name", ["wait", "start", "events", "list_runs", "embedded"])
def test_those_that_may_fail_in_several_ways_name_them_by_their_codes(name: str) -> None:
    assert re.search(r"Raises|raises", _doc(name))
    assert re.search(r"`InvalidInput`|`StorageFailed`|as `wait` does", _doc(name))


def test_guarantees_stand_where_they_are_given() -> None:
    for name, word in (("start", "surely in the log"), ("events", "no gap"), ("wait", "no limit of time")):
        assert word in _doc(name).replace("\n", " ")
