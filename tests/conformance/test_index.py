"""The index of cases in `docs/conformance.md` is whole, and what it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
LATER = {15, 18, 22, 23}
EXPECTED = {
    *(f"4.{number}" for number in range(1, 22)),
    *(f"6.{number}" for number in range(1, 29) if number not in LATER),
    *(f"10.{number}" for number in range(1, 34)),
    *(f"12.{number}" for number in range(1, 22)),
    *(f"F{number}" for number in (11, *range(17, 31))),
}
ROW = re.compile(r"^\| ((?:4|6|10|12)\.\d+|F\d+) \| (.+) \| (.+) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    """Case, what must hold, tests."""
    return ROW.findall((ROOT / "docs" / "conformance.md").read_text())


def test_every_case_stands_in_the_index_once() -> None:
    cases = [case for case, _, _ in rows()]
    assert len(cases) == len(set(cases))
    assert set(cases) == EXPECTED


def test_every_test_that_is_named_exists() -> None:
    named = [name for _, _, tests in rows() for name in re.findall(r"`([^`]+)`", tests)]
    assert named
    missing = [name for name in named if not _exists(*name.partition("::")[::2])]
    assert not missing


def test_every_case_names_a_test() -> None:
    assert not [case for case, _, tests in rows() if "`" not in tests]


def _exists(file: str, test: str) -> bool:
    path = TESTS / file
    if not path.is_file():
        return False
    functions = ast.walk(ast.parse(path.read_text()))
    names = {node.name for node in functions if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return test in names if test else any(name.startswith("test_") for name in names)
