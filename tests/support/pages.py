"""What pages of documentation show, as files in a folder and lines in a shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.lightagent_env import ROOT

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
JSON = re.compile(r"`(\w+\.json)`[^`]*```json\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"# (?:dagbok run )?(\w+\.py)\b.*\n")


def files_of(page: Path) -> dict[str, str]:
    """Blocks of Python that say in their first line which file they are, and of JSON behind the name of one."""
    text = page.read_text()
    named = [(found[1], block) for block in PYTHON.findall(text) if (found := NAME.match(block))]
    return dict([*named, *JSON.findall(text)])


def unnamed(page: Path) -> list[str]:
    """The blocks of Python that do not say which file they are."""
    return [block for block in PYTHON.findall(page.read_text()) if not NAME.match(block)]


def in_a_shell(folder: Path, *lines: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The lines as they are pasted into a shell, with this interpreter in the place of the one on the path."""
    python = shlex.quote(sys.executable)
    known = f'dagbok() {{ {python} -m dagbok "$@"; }}; python() {{ {python} "$@"; }}'
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAGBOK_", "OPENAI_", "MODEL"))}
    return subprocess.run(
        ["sh", "-c", "\n".join([known, *lines])],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
