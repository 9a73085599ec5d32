"""What the README shows is run as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lightagent_env import ROOT
from tests.support.pages import PYTHON, in_a_shell

README = ROOT / "README.md"


def test_the_python_of_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    program, _ = PYTHON.findall(README.read_text())
    (promised,) = re.findall(r"print\(.*\)  # (.*)", program)
    (tmp_path / "program.py").write_text(program)
    for _ in range(2):  # the second time it is the same run
        ran = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, [promised]), ran.stderr


def statuses(folder: Path) -> dict[str, str]:
    """Of the tasks of the last run."""
    shown = in_a_shell(folder, "dagbok show last --json")
    assert shown.returncode == 0, shown.stderr
    return {task["task"]: task["status"] for task in json.loads(shown.stdout)["tasks"]}


def walk_through() -> list[list[str]]:
    """What the page does with `lines.py`: the lines of each block."""
    blocks = re.findall(r"^```\n(dagbok run lines\.py.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    return [block.splitlines() for block in blocks]


@pytest.mark.slow
def test_what_the_readme_does_with_its_file_goes_as_it_says(tmp_path: Path) -> None:
    _, program = PYTHON.findall(README.read_text())
    (tmp_path / "lines.py").write_text(program)
    first, (fails, *mends) = walk_through()
    begun = in_a_shell(tmp_path, "set -e", *first)
    assert begun.returncode == 0, begun.stderr
    assert statuses(tmp_path) == {"count": "verified", "review": "verified", "ship": "verified"}
    failing = in_a_shell(tmp_path, fails)
    assert (failing.returncode, "No such file or directory" in failing.stdout) == (1, True), failing.stderr
    mended = in_a_shell(tmp_path, "set -e", *mends)
    assert mended.returncode == 0, mended.stderr
    assert statuses(tmp_path) == {"count": "verified", "review": "verified", "ship": "skipped"}


def listed() -> dict[str, str]:
    """The command of each example that the page lists, by its file."""
    found = re.findall(r"^- \[`(.+)`\]\((examples/\w+\.py)\): ", README.read_text(), re.MULTILINE)
    assert all(file in command for command, file in found)
    return {file: command for command, file in found}


def test_every_example_is_listed_with_its_command() -> None:
    assert sorted(listed()) == sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("examples/*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(listed()))
def test_the_command_of_an_example_works_as_it_stands(tmp_path: Path, file: str) -> None:
    ran = in_a_shell(ROOT, listed()[file], DAGBOK_DATA=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


@pytest.mark.parametrize("file", sorted(file for file, command in listed().items() if command.startswith("dagbok run")))
def test_an_example_that_is_run_as_a_script_says_how_it_is_run_or_runs(tmp_path: Path, file: str) -> None:
    ran = in_a_shell(ROOT, f"python {file}", DAGBOK_DATA=str(tmp_path))
    told = (1, f"run it so: dagbok run {file}\n")
    assert (ran.returncode, ran.stderr) == told or (ran.returncode == 0 and ran.stdout)
