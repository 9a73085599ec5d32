"""The environment that has LightAgent: `make lightagent` makes it where it is not there yet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-lightagent" / "bin" / "python"


def lightagent_python() -> Path:
    """Its interpreter."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "--silent", "lightagent"], cwd=ROOT, env=environment, check=True)
    return PYTHON
