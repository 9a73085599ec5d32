"""`pause`, `resume`, `cancel` and `resolve` on a folder that nobody owns: the command decides itself."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Call
from tests.cli.programs import Program


def status_of(call: Call, program: Program) -> str:
    """How the newest run stands."""
    status: str = call(*program.look("show", "last", "--json")).json["run"]["status"]
    return status


def test_pause_and_resume(call: Call, copied: Program) -> None:
    said = call(*copied.look("pause", "last", "--reason", "lunch"))
    assert said.status == 0
    assert said.out.startswith("paused: run ")
    assert status_of(call, copied) == "paused"
    shown = call(*copied.look("show")).out
    assert "paused: lunch" in shown
    assert "to go on: dagbok resume " in shown
    assert call(*copied.look("resume", "last")).status == 0
    assert status_of(call, copied) == "blocked"


def test_cancel_as_json(call: Call, copied: Program) -> None:
    told = call(*copied.look("cancel", "last", "--json", "--reason", "enough")).json
    assert told["accepted"]
    assert "RunCancelled" in told["events"]
    assert status_of(call, copied) == "cancelled"


def test_resolve_takes_the_beginning_of_a_task(call: Call, copied: Program) -> None:
    assert call(*copied.look("resolve", "last", "part-01", "--note", "here it is")).status == 0
    shown = call(*copied.look("show", "last", "--json")).json
    assert shown["run"]["status"] == "running"
    (note,) = [line for line in call(*copied.look("events", "last")).out.splitlines() if "TaskUnblocked" in line]
    assert "note=here it is" in note


def test_an_ambiguous_task_is_an_error(call: Call, copied: Program) -> None:
    said = call(*copied.look("resolve", "last", "part"))
    assert said.status == 2
    assert "3 tasks begin with part" in said.err


def test_a_refusal_is_an_error_with_its_code(call: Call, copied: Program) -> None:
    said = call(*copied.look("resume", "last"))
    assert said.status == 3
    assert said.err.startswith("DAGBOK-VERSION-CONFLICT: ")
    assert call(*copied.look("resume", "last", "--json")).error["code"] == "version_conflict"


def test_the_user_is_in_the_log(call: Call, copied: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGBOK_USER", "eve")
    call(*copied.look("pause", "last"))
    last = call(*copied.look("events", "last", "--json")).out.splitlines()[-1]
    assert '"actor":"user:eve"' in last
