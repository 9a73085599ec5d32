"""`dagbok schema`: it prints what a validator takes, and what `dagbok events --json` prints fits it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dagbok.events.schema import commands_schema, events_schema
from tests.cli.conftest import Call
from tests.cli.programs import Program

SCHEMAS = {"commands": commands_schema(), "events": events_schema()}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed_for_people_or_on_one_line(
    call: Call, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("schema", name)
    assert (said.status, said.err, said.json) == (0, "", json.loads(json.dumps(SCHEMAS[name])))
    assert said.out.startswith('{\n  "$schema": "https://json-schema.org/draft/2020-12/schema",\n  "$id": "urn:dagbok:')
    line = call("schema", name, "--json")
    assert (line.json, line.out.count("\n")) == (said.json, 1)
    assert list(tmp_path.iterdir()) == [], "it needs no data folder"


@pytest.mark.parametrize(("name", "told"), [("commands", "may send"), ("events", "may read")])
def test_the_help_says_what_it_is_good_for(call: Call, name: str, told: str) -> None:
    assert name in call("schema", "--help").out
    said = call("schema", name, "--help").out
    assert told in said
    assert f"dagbok schema {name} > {name}.schema.json" in said


def test_what_events_prints_fits_the_schema(call: Call, three_runs: Program) -> None:
    validator = Draft202012Validator(call("schema", "events").json)
    for run in call("ls", "--json", "--data", str(three_runs.data)).json:
        lines: list[Any] = call("events", run["run"], "--json", "--data", str(three_runs.data)).out.splitlines()
        assert lines
        for line in lines:
            validator.validate(json.loads(line))
