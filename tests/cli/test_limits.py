"""`dagbok limits` and `dagbok artifact collect`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dagbok.cli import main

FLOW = """
from dagbok import Outcome, TaskSpec, verifier, worker

@worker("wait", pure=True)
async def wait(task):
    return Outcome.blocked("not yet")

@verifier("check", version="1")
def check(candidate, task):
    return True

def main() -> TaskSpec:
    return TaskSpec(id="t", goal="g", worker="wait", verifier="check")
"""


@pytest.fixture
def place(tmp_path: Path) -> list[str]:
    """A data folder with one blocked run."""
    file, data = tmp_path / "flow.py", tmp_path / "data"
    file.write_text(FLOW)
    assert main(["run", str(file), "--data", str(data), "--quiet"]) == 4
    return ["--data", str(data)]


def shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> object:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_limits_are_shown_and_raised(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = shown(["limits", "last", *place], capsys)
    assert isinstance(before, dict)
    assert main(["limits", "last", "max_tasks=200000", *place]) == 0
    assert shown(["limits", "last", *place], capsys) == {**before, "max_tasks": 200_000}


def test_limits_only_grow_and_have_names(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["limits", "last", "max_tasks=5", *place]) == 3
    assert "DAGBOK-CONFIG-MISMATCH" in capsys.readouterr().err
    assert main(["limits", "last", "tasks=5", *place]) == 2
    assert "max_tasks" in capsys.readouterr().err


def test_nothing_young_is_collected(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(["artifact", "collect", "--remove", *place], capsys)
    assert isinstance(found, dict)
    assert {kind: report["orphans"] for kind, report in found.items()} == {"artifacts": 0, "snapshots": 0}
    assert main(["artifact", "collect", "--grace-days", "0", *place]) == 2
