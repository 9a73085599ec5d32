"""Ways to run the program of these tests (`adding.py`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).with_name("adding.py")
LIMIT_S = 30.0


class Program:
    """The program in a folder of its own, with the data folder beside it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.file, self.data = folder, folder / "adding.py", folder / "data"
        self.file.write_text(SOURCE.read_text())

    def command(self, *options: str) -> list[str]:
        """The arguments of `dagbok` that run it."""
        return ["run", str(self.file), "--at", str(self.folder), "--data", str(self.data), *options]

    def look(self, *arguments: str) -> list[str]:
        """The arguments of another command on the same data folder."""
        return [*arguments, "--data", str(self.data)]

    def calls(self) -> list[str]:
        """Which parts were worked on, in order."""
        file = self.folder / "calls.txt"
        return file.read_text().splitlines() if file.exists() else []

    def open_gate(self) -> None:
        """Let the parts finish that wait."""
        (self.folder / "gate").touch()


def begin(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """`dagbok` as a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DAGBOK_")}
    return subprocess.Popen(
        [sys.executable, "-m", "dagbok", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=heed_signals,
    )


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it holds; fail after half a minute."""
    until = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < until, "it never came to hold"
        time.sleep(0.02)


def heed_signals() -> None:
    """A shell that runs tests in the background makes its children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
