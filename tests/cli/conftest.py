"""Runs on a real data folder, made once; tests that change something get a copy."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from dagbok.cli import main
from tests.cli.programs import Program

ENDS = {"pass": 0, "fail": 1, "block": 4}


@dataclass(frozen=True)
class Said:
    """What a command wrote and returned."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output as JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error that it wrote as JSON."""
        return json.loads(self.err.splitlines()[-1])["error"]


Call = Callable[..., Said]


@pytest.fixture(autouse=True)
def _leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("DATA", "TENANT", "PROJECT", "USER", "LOG_LEVEL", "LOG_FORMAT", "DEBUG"):
        monkeypatch.delenv(f"DAGBOK_{name}", raising=False)
    path = sys.path.copy()
    yield
    sys.path[:] = path
    structlog.reset_defaults()


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command line in this process."""

    def perform(*arguments: str) -> Said:
        capsys.readouterr()
        status = main(list(arguments))
        return Said(status, *capsys.readouterr())

    return perform


@pytest.fixture(scope="session")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A folder with a run that succeeded (14 parts), one that failed, and one that is blocked. Not to be changed."""
    program = Program(tmp_path_factory.mktemp("cli"))
    for how, status in ENDS.items():
        count = "14" if how == "pass" else "3"
        assert main(program.command("--how", how, "--count", count, "--quiet")) == status
    return program


@pytest.fixture
def copied(three_runs: Program, tmp_path: Path) -> Program:
    """The same, to be changed."""
    program = Program(tmp_path)
    shutil.copytree(three_runs.data, program.data)
    return program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program that has not run yet."""
    return Program(tmp_path)
