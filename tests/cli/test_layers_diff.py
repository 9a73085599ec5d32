"""`dagbok layers diff`: what resuming a snapshot with a graph would do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call

LAYERS = """
from dagbok.agents.layers import *
from pydantic import BaseModel

class State(BaseModel):
    lines: list[str] = []

class Notes(PlainLayer[NoLayerDeps, EmptyLayerConfig, State]):
    type_id = "my.notes"
    state_version = 2
    state_migrators = {1: lambda state: {"lines": state["texts"]}}

RULES = ResumeRules(
    layers={"old": ResumePolicy(removed=ResumeAction.DROP), "tools": ResumePolicy(added=ResumeAction.START_NEW)},
    retired=[LayerNode("old", Notes)],
)
"""
GRAPH = {
    "layers": [
        {"name": "rules", "type": "plain.prompt"},
        {"name": "notes", "type": "my.notes"},
        {"name": "tools", "type": "my.tools"},
    ]
}


def layer(name: str, kind: str, **state: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "state_version": 1, "lifecycle": "suspended", "cleanly": True, "state": state}


SNAPSHOT = {
    "format": "dagbok.layers.snapshot",
    "schema_version": 3,
    "id": "0001",
    "layers": [
        layer("rules", "plain.prompt"),
        layer("notes", "my.notes", texts=["a"]),
        layer("old", "my.notes", texts=[]),
    ],
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(LAYERS)
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))
    (tmp_path / "snapshot.json").write_text(json.dumps(SNAPSHOT))
    return tmp_path


def diff(call: Call, files: Path, *more: str) -> Any:
    return call("layers", "diff", str(files / "snapshot.json"), str(files / "graph.json"), *more)


def test_without_rules_every_change_is_refused(call: Call, files: Path) -> None:
    said = diff(call, files, "--import", str(files / "mine.py"))
    assert said.status == 1
    assert said.out.splitlines() == [
        "  rules  plain.prompt  goes on",
        "~ notes  my.notes      goes on, migrated: notes has version 2 of its state, had 1",
        "! tools  my.tools      refused: tools is new",
        "! old    my.notes      refused: old is gone",
        "cannot be resumed: tools, old refused",
    ]
    assert "no class is known here for my.tools" in said.err


def test_with_the_rules_of_a_file(call: Call, files: Path) -> None:
    said = diff(call, files, "--import", str(files / "mine.py"), "--rules", "RULES", "--json")
    assert said.status == 0
    assert (said.json["can_be_resumed"], said.json["unknown_types"]) == (True, ["my.tools"])
    assert [each["outcome"] for each in said.json["layers"]] == ["resume", "migrate", "start_new", "drop"]


def test_types_that_are_only_names_are_compared_as_names(call: Call, files: Path) -> None:
    said = diff(call, files)
    assert "  notes  my.notes      goes on" in said.out.splitlines()
    assert "for my.notes, my.tools: their states and versions are not looked at" in said.err


def test_a_state_that_could_not_be_read_is_told(call: Call, files: Path) -> None:
    bad = {**SNAPSHOT, "layers": [SNAPSHOT["layers"][0], layer("notes", "my.notes", texts=1)]}  # type: ignore[index]
    (files / "snapshot.json").write_text(json.dumps(bad))
    said = diff(call, files, "--import", str(files / "mine.py"))
    assert "! notes  my.notes      refused: 1 validation error for State lines" in said.out


@pytest.mark.parametrize(
    "written",
    [
        {"schema_version": 1, "layers": [{"name": "rules", "lifecycle_state": "suspended", "runtime_state": {}}]},
        {"schema_version": 2, "layers": {"rules": {}}},
        {
            "format": "dagbok.layers",
            "v": 1,
            "graph": "x",
            "layers": {"rules": {"type": "plain.prompt", "lifecycle": "suspended", "state": {}}},
        },
        {
            "task": "talk",
            "turn": 2,
            "last_turn": 3,
            "digest": "0",
            "value": {
                "format": "dagbok.layers",
                "v": 1,
                "graph": "x",
                "layers": {"rules": {"type": "plain.prompt", "lifecycle": "suspended", "state": {}}},
            },
        },
    ],
)
def test_snapshots_of_others_and_sessions_are_read_too(call: Call, files: Path, written: dict[str, Any]) -> None:
    (files / "snapshot.json").write_text(json.dumps(written))
    said = diff(call, files, "--json")
    assert [each["outcome"] for each in said.json["layers"]] == ["resume", "refuse", "refuse"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "snapshot.json: "),
        ('{"schema_version": 9}', "version 9"),
        ('{"format": "dagbok.layers", "v": 7}', "version 7"),
    ],
)
def test_what_is_no_snapshot_is_one_line(call: Call, files: Path, text: str, told: str) -> None:
    (files / "snapshot.json").write_text(text)
    said = diff(call, files)
    assert (said.status, told in said.err) == (2, True)
    assert said.err.startswith("DAGBOK-USAGE: ")
    (files / "snapshot.json").unlink()
    assert "cannot read" in diff(call, files).err


def test_rules_must_be_in_an_imported_file(call: Call, files: Path) -> None:
    said = diff(call, files, "--rules", "RULES")
    assert (said.status, "no imported file has ResumeRules named 'RULES'" in said.err) == (2, True)
