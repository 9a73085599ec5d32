"""The example that also proves the wheel: it runs as a program, twice on one folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "dynamic_dag.py"


def run_in(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE)],
        env={**os.environ, "DAGBOK_DATA": str(folder / "data")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_all_three_tasks_are_verified_and_the_wrong_one_was_mended(tmp_path: Path) -> None:
    ran = run_in(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "offline-demo succeeded: {'verified': 3}",
        "root     verified {'attempt': 1, 'parts': 2}",
        "analysis verified {'attempt': 2, 'told': {'off_by': -5}, 'total': 55}",
        "summary  verified {'attempt': 1, 'week': 3}",
    ]
    again = run_in(tmp_path)
    assert (again.returncode, again.stdout) == (0, ran.stdout)
