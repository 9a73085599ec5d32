"""Ctrl-C while the command line is still being imported."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.programs import LIMIT_S, heed_signals

INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "cyclopts":
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Interrupt())
from dagbok.cli import main
sys.exit(main(["ls"]))
"""

AFTERWARDS = """
import signal
from dagbok.cli import main
before = signal.getsignal(signal.SIGINT)
main(["--version"])
assert signal.getsignal(signal.SIGINT) is before is signal.default_int_handler
"""


def python(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, preexec_fn=heed_signals
    )


def test_ctrl_c_while_it_is_imported_ends_it_without_a_traceback() -> None:
    ended = python(INTERRUPTED_IMPORT)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-2, "", "")


def test_a_program_that_calls_it_has_its_own_ctrl_c_again() -> None:
    ended = python(AFTERWARDS)
    assert ended.returncode == 0, ended.stderr
