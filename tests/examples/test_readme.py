"""What the README shows is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from dagbok import TaskSpec, When

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


def test_the_main_of_the_readme_is_one() -> None:
    _, main = PYTHON.findall(README.read_text())
    names: dict[str, object] = {"TaskSpec": TaskSpec, "When": When}
    exec(main, names)
    tasks = names["main"]("other.txt")  # type: ignore[operator]
    assert [task.id for task in tasks] == ["count", "review", "ship"]
    assert tasks[0].inputs == "other.txt"
