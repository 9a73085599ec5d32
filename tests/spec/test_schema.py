"""The exported schemas: they are JSON Schema, they say what each message must have, and nothing that counts is left
out."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from dagbok.events.run.commands import RUN_COMMANDS
from dagbok.events.run.events import EVENTS
from dagbok.events.schema import DIALECT, commands_schema, events_schema
from dagbok.events.schema_types import Definitions, Schema
from tests.support import schemas

STARTS: Any = {
    "v": 1,
    "type": "StartRun",
    "version": 1,
    "id": "5f0c",
    "tenant": "acme",
    "project": "docs",
    "stream": "run:r1",
    "actor": "user:ann",
    "first_sent_ms": 1_700_000_000_000,
    "cause": None,
    "data": {
        "tasks": [{"id": "a", "goal": "do it", "worker": "w", "verifier": "v", "inputs": {"any": ["thing", None]}}],
        "roots": ["a"],
        "pinned": {"verifiers": {"v": {"version": "1", "digest": "d"}}},
    },
}
SUBMITS: Any = STARTS | {
    "type": "SubmitOutcome",
    "data": {
        "task": "a",
        "epoch": 1,
        "claim": ["process", 1, "nonce"],
        "input_hash": "h",
        "outcome": {
            "kind": "candidate",
            "artifacts": [
                {"name": "result", "sha256": "00", "size_bytes": 2, "media_type": "text/plain", "inline": "aGk="}
            ],
        },
    },
}
VERIFIED: Any = {"type": "TaskVerified", "version": 1, "data": {"task": "a", "report_id": "r"}}

Path = tuple[str | int, ...]
ABSENT: Any = object()


def changed(message: Any, place: Path, value: Any) -> Any:
    """The message with another value at a place, or with none."""
    found = copy.deepcopy(message)
    inner = found
    for step in place[:-1]:
        inner = inner[step]
    if value is ABSENT:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return found


@pytest.mark.parametrize("schema", [commands_schema(), events_schema()], ids=["commands", "events"])
def test_they_are_json_schema(schema: Schema) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == DIALECT == Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize(("schema", "kinds"), [(commands_schema(), RUN_COMMANDS), (events_schema(), EVENTS)])
def test_every_type_has_its_version_and_its_data(schema: Any, kinds: dict[str, Any]) -> None:
    told = {one["title"]: one["properties"] for one in schema["oneOf"]}
    assert told == {
        name: {"type": {"const": name}, "version": {"const": kind.version}, "data": {"$ref": f"#/$defs/{name}"}}
        for name, kind in kinds.items()
    }
    for name, kind in kinds.items():
        assert list(schema["$defs"][name]["properties"]) == list(kind.__struct_encode_fields__)


def test_the_same_id_is_the_same_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    assert commands_schema() == commands_schema()
    ids = [str(schema["$id"]) for schema in (commands_schema(), events_schema())]
    assert [id.rpartition(":")[0] for id in ids] == ["urn:dagbok:schema:commands:1", "urn:dagbok:schema:events:1"]
    monkeypatch.setitem(RUN_COMMANDS, "Another", RUN_COMMANDS["PauseRun"])
    assert commands_schema()["$id"] != ids[0]


@pytest.mark.parametrize("command", [STARTS, SUBMITS, changed(STARTS, ("v",), ABSENT)])
def test_a_command_fits(command: Any) -> None:
    schemas.commands().validate(command)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("cause",), ABSENT),
        (("new",), "a field of a later version"),
        (("data", "new"), "one more"),
        (("data", "tasks", 0, "when"), [{"task": "b", "output": "/x", "values": [1, "a", None, {}], "op": "not_in"}]),
        (("data", "context"), {"user": "ann", "permissions": []}),
        (("data", "limits"), {"max_cost": None, "max_tokens": 5}),
    ],
)
def test_what_may_be_left_out_or_added(place: Path, value: Any) -> None:
    schemas.commands().validate(changed(STARTS, place, value))


@pytest.mark.parametrize(
    ("command", "place", "value"),
    [
        *((STARTS, (name,), ABSENT) for name in STARTS if name not in ("v", "cause")),
        *((STARTS, ("data", name), ABSENT) for name in STARTS["data"]),
        *((STARTS, ("data", "tasks", 0, name), ABSENT) for name in ("id", "goal", "worker", "verifier")),
        (STARTS, ("v",), 2),
        (STARTS, ("type",), "StartRuns"),
        (STARTS, ("type",), "PauseTask"),
        (STARTS, ("type",), "CancelTask"),
        (STARTS, ("type",), None),
        (STARTS, ("version",), 2),
        (STARTS, ("version",), "1"),
        (STARTS, ("id",), ""),
        (STARTS, ("id",), "x" * 301),
        (STARTS, ("tenant",), "a b"),
        (STARTS, ("project",), "x" * 129),
        (STARTS, ("stream",), "r1"),
        (STARTS, ("stream",), "action:r1"),
        (STARTS, ("first_sent_ms",), -1),
        (STARTS, ("first_sent_ms",), 2**53),
        (STARTS, ("first_sent_ms",), "1700000000000"),
        (STARTS, ("first_sent_ms",), 1.5),
        (STARTS, ("data",), []),
        (STARTS, ("data", "roots"), "a"),
        (STARTS, ("data", "roots"), [1]),
        (STARTS, ("data", "tasks", 0, "priority"), True),
        (STARTS, ("data", "tasks", 0, "session"), {"run": "r"}),
        (STARTS, ("data", "pinned", "failure_policy"), "never"),
        (STARTS, ("data", "pinned", "verifiers", "v", "judges"), ["candidate", "taste"]),
        (STARTS, ("data", "context"), {"user": "ann", "permissions": "some"}),
        (SUBMITS, ("data", "claim"), {"process": "p", "start": 1, "nonce": "n"}),
        (SUBMITS, ("data", "claim"), ["p", 1]),
        (SUBMITS, ("data", "claim"), ["p", "1", "n"]),
        (SUBMITS, ("data", "outcome", "kind"), ABSENT),
        (SUBMITS, ("data", "outcome", "kind"), "guess"),
        (SUBMITS, ("data", "outcome", "artifacts", 0, "inline"), "no base64!"),
        (SUBMITS, ("data", "usage"), {"cost": 0.5}),
    ],
)
def test_what_is_no_command_does_not_fit(command: Any, place: Path, value: Any) -> None:
    assert not schemas.commands().is_valid(changed(command, place, value))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("type",), ABSENT),
        (("version",), ABSENT),
        (("data",), ABSENT),
        (("type",), "TaskVerifed"),
        (("type",), "TaskBlocked"),
        (("version",), 2),
        (("data", "task"), ABSENT),
        (("data", "task"), 1),
        (("data", "not_taken"), [None]),
    ],
)
def test_what_is_no_event_does_not_fit(place: Path, value: Any) -> None:
    schemas.events().validate(VERIFIED)
    assert not schemas.events().is_valid(changed(VERIFIED, place, value))


def test_a_default_stands_there_as_in_the_message() -> None:
    known = schemas.commands().schema["$defs"]
    defaults = {name: member["default"] for name, member in known["Spec"]["properties"].items() if "default" in member}
    assert (defaults["contract"], defaults["lease_ms"], defaults["depends_on"]) == (None, 60_000, [])
    assert known["StartRun"]["properties"]["limits"]["default"] == {}
    assert known["StartRun"]["properties"]["context"]["default"] == {"user": "local"}


class Pair(msgspec.Struct):
    """Has a field of a type that no message has."""

    at: float | set[int]


def test_a_type_that_is_not_known_is_an_error_rather_than_a_guess() -> None:
    with pytest.raises(TypeError, match="no JSON Schema is known here for"):
        Definitions().refer(Pair)


def test_two_classes_of_one_name_are_an_error() -> None:
    known = Definitions()
    known.refer(msgspec.defstruct("Twin", [("a", int)]))
    with pytest.raises(TypeError, match="Twin is the name of two classes"):
        known.refer(msgspec.defstruct("Twin", [("b", int)]))
