"""What a program that embeds dagbok sees of its log lines, each in a process of its own: logging is global."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_S = 60

PROGRAM = """
import asyncio, logging, sys
import structlog
from dagbok import Dagbok
{before}

async def main():
    async with Dagbok.embedded(sys.argv[1], own="must", projector="none"):
        ours = structlog.get_logger("dagbok.agents.somewhere")
        ours.debug("not.told")
        ours.info("told.when.asked")
        ours.warning("attempt.unserved", run="r1", key="a key", serves=("x",), said="two\\nlines = 100%")
        try:
            raise ValueError("bad\\nfile")
        except ValueError as error:
            ours.error("command.broke", exc_info=error)
            ours.exception("broke.too")
        structlog.get_logger().info("of the program", n=1)
        with structlog.testing.capture_logs() as captured:
            ours.info("seen.by.a.test", n=1)
        assert captured == [{"event": "seen.by.a.test", "n": 1, "log_level": "info"}], captured

asyncio.run(main())
"""


def _run(folder: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    program = PROGRAM.replace("{before}", before)
    command = [sys.executable, "-c", program, str(folder / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_a_script_that_configures_nothing_sees_warnings_as_plain_lines(tmp_path: Path) -> None:
    said = _run(tmp_path)
    assert said.stderr.splitlines() == [
        'dagbok: warning: attempt.unserved run=r1 key="a key" serves=(\'x\',) said="two\\nlines = 100%"',
        'dagbok: error: command.broke error="ValueError: bad\\nfile"',
        'dagbok: error: broke.too error="ValueError: bad\\nfile"',
    ]


def test_loggers_of_the_program_stay_as_they_were(tmp_path: Path) -> None:
    (line,) = _run(tmp_path).stdout.splitlines()
    assert "of the program" in line
    assert "info" in line


def test_a_program_that_configures_logging_has_them_as_its_records(tmp_path: Path) -> None:
    configured = (
        "logging.basicConfig(level='INFO', format='%(name)s|%(levelname)s|%(filename)s|%(funcName)s|%(message)s')"
    )
    said = _run(tmp_path, configured).stderr
    ours = [line for line in said.splitlines() if line.startswith("dagbok.agents.somewhere|")]
    assert ours == [
        "dagbok.agents.somewhere|INFO|<string>|main|told.when.asked",
        "dagbok.agents.somewhere|WARNING|<string>|main|"
        'attempt.unserved run=r1 key="a key" serves=(\'x\',) said="two\\nlines = 100%"',
        "dagbok.agents.somewhere|ERROR|<string>|main|command.broke",
        "dagbok.agents.somewhere|ERROR|<string>|main|broke.too",
    ]
    assert said.count("\nValueError: bad\nfile") == 2  # the end of a traceback


def test_a_program_that_configures_structlog_has_them_there(tmp_path: Path) -> None:
    configured = (
        "structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()])"
    )
    said = _run(tmp_path, configured)
    assert said.stderr == ""
    assert '"event": "not.told"' in said.stdout
    assert '"event": "attempt.unserved"' in said.stdout
