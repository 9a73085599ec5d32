"""Runs the workload on a peer, in an environment of its own with pinned versions."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).resolve().parent.parent.parent
ENVIRONMENTS: Final = ROOT / ".venv-peers"

PEERS: Final = ("lightagent",)
"""By name: `bench/peers/<name>.txt` is what is installed, `bench/peers/<name>_fanout.py` what is run."""

QUIET: Final = {"DO_NOT_TRACK": "1", "MEM0_TELEMETRY": "False", "POSTHOG_DISABLED": "1"}
"""Keeps the packages that a peer brings from calling home while it is measured."""


class PeerFigures(msgspec.Struct, frozen=True):
    """What a peer's program prints."""

    version: str
    tasks_per_s: float
    wall_s: float
    cpu_ms_per_task: float
    peak_rss_mb: float


def run_peer(name: str, folder: Path, tasks: int) -> PeerFigures:
    """One run in a fresh folder. Makes the environment first, where it is not there yet."""
    python = _environment(name, ROOT / "bench" / "peers" / f"{name}.txt")
    program = ROOT / "bench" / "peers" / f"{name}_fanout.py"
    command = (str(python), "-I", str(program), str(folder), str(tasks))
    done = subprocess.run(command, cwd=folder, env=os.environ | QUIET, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=PeerFigures)


def _environment(name: str, requirements: Path) -> Path:
    """The interpreter of an environment that has exactly these requirements."""
    digest = sha256(requirements.read_bytes()).hexdigest()
    place = ENVIRONMENTS / name
    python, stamp = place / "bin" / "python", place / "installed"
    if not stamp.is_file() or stamp.read_text() != digest:
        print(f"installing {name} into {place.relative_to(ROOT)}", file=sys.stderr, flush=True)
        venv.create(place, clear=True, with_pip=True)
        pip = (str(python), "-m", "pip", "--quiet", "--disable-pip-version-check")
        subprocess.run((*pip, "install", "-r", str(requirements)), check=True, stdout=sys.stderr)
        stamp.write_text(digest)
    return python
