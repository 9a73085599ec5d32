"""The type checker is told by name what to check: nothing that is code may be left out."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]


def test_every_example_is_type_checked() -> None:
    examples = ROOT / "examples"
    programs = {file.stem for file in examples.glob("*.py")}
    parts = {file.parent.name for file in examples.glob("*/*.py")}
    assert programs == set(MYPY["modules"])
    assert parts <= set(MYPY["packages"])


def test_every_other_folder_with_code_is_type_checked() -> None:
    """`agents`, `events` and `projections` are checked as parts of `dagbok`, `docs/` holds models that stand alone."""
    holding_code = {file.relative_to(ROOT).parts[0] for file in ROOT.glob("[!.]*/**/*.py")}
    assert holding_code - {"agents", "events", "projections", "docs", "examples", "build"} <= set(MYPY["packages"])
