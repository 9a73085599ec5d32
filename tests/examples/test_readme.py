"""What the README shows is run as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_python_of_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    program, _ = PYTHON.findall(README.read_text())
    (promised,) = re.findall(r"print\(.*\)  # (.*)", program)
    (tmp_path / "program.py").write_text(program)
    for _ in range(2):  # the second time it is the same run
        ran = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, [promised]), ran.stderr


@pytest.mark.parametrize(("lines", "ship"), [(3, "verified"), (1, "skipped")])
def test_the_file_of_the_readme_runs_as_it_stands(tmp_path: Path, lines: int, ship: str) -> None:
    _, program = PYTHON.findall(README.read_text())
    (tmp_path / "lines.py").write_text(program)
    (tmp_path / "notes.txt").write_text("a line\n" * lines)
    assert "dagbok run lines.py --path notes.txt" in README.read_text()
    done = subprocess.run(
        [sys.executable, "-m", "dagbok", "run", "lines.py", "--path", "notes.txt", "--json"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("DAGBOK_")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "dagbok", "show", "--json", "--data", "dagbok-data"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert {task["task"]: task["status"] for task in json.loads(shown.stdout)["tasks"]} == {
        "count": "verified",
        "review": "verified",
        "ship": ship,
    }
