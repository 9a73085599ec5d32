"""docs/api.md has every public name, and every field and method of those that have many."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dagbok
import dagbok.testing
from dagbok import Candidate, Dagbok, Limits, Outcome, RunResult, TaskContext, TaskLimits, TaskSpec, Verdict, When

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
WORDS = set(re.findall(r"\w+", " ".join(CODE.findall(PAGE))))


def _public(cls: type) -> set[str]:
    return {name for base in cls.__mro__[:-1] for name in vars(base) if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted({*dagbok.__all__, *dagbok.testing.__all__}))
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert name in WORDS


@pytest.mark.parametrize("cls", [Candidate, Dagbok, TaskContext])
def test_all_that_can_be_asked_of_them_is_on_the_page(cls: type) -> None:
    assert _public(cls) - {"keys", "items", "values", "get"} <= WORDS


@pytest.mark.parametrize("cls", [TaskSpec, TaskLimits, Limits, When])
def test_what_people_write_is_there_field_by_field(cls: type[TaskSpec | TaskLimits | Limits | When]) -> None:
    assert set(cls.model_fields) <= WORDS


def test_so_are_results_outcomes_and_verdicts() -> None:
    results = {*RunResult.__dataclass_fields__, "succeeded", "artifacts", "json"}
    made = {f"{cls.__name__}.{name}" for cls in (Outcome, Verdict) for name in _makers(cls)}
    assert results <= WORDS
    assert [name for name in sorted(made) if name not in PAGE] == []


def test_defaults_of_limits_are_those_of_the_program() -> None:
    rows = {name: row for row in PAGE.splitlines() for name in re.findall(r"`(\w+)`", row) if row.startswith("| `max_")}
    for name in ("max_tasks", "max_edges", "max_children", "max_open", "max_attempts", "max_pending_verifications"):
        assert f"{getattr(Limits(), name):,}" in rows[name]


def _makers(cls: type) -> list[str]:
    return [name for name, made in vars(cls).items() if isinstance(made, classmethod) and not name.startswith("_")]
