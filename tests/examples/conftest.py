"""The examples import what lies beside them, as a script does: their folder is where modules are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLES = str(Path(__file__).parents[2] / "examples")

if EXAMPLES not in sys.path:
    sys.path.append(EXAMPLES)
