"""JSON Schema of what stands in the topics, for programs in other languages (`docs/other-languages.md`).

The definitions are those of `events/run/` and `events/envelope.py`: what fits the schema is what dagbok can read.
Fields that the schema does not name are ignored by readers, as they are by dagbok: a later version may write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dagbok.events.body import StoredEvent
from dagbok.events.canonical import Json, digest
from dagbok.events.envelope import ENVELOPE_VERSION, MAX_FIELD_CHARS, MAX_TIME_MS, Command
from dagbok.events.ids import ID_PATTERN
from dagbok.events.run.commands import RUN_COMMANDS, RunCommand
from dagbok.events.run.events import EVENTS, Event
from dagbok.events.schema_types import Definitions, Schema

SCHEMA_VERSION: Final = 1
"""Of the form of these documents: 2 would be one that programs have to be changed for."""
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_NAME: Final[Schema] = {"maxLength": MAX_FIELD_CHARS}
_ID: Final[Schema] = {"pattern": f"^{ID_PATTERN.pattern}$"}
_NARROWER: Final[dict[str, Schema]] = {
    "v": {"const": ENVELOPE_VERSION},
    "id": _NAME | {"minLength": 1},
    "tenant": _ID,
    "project": _ID,
    "stream": {"pattern": f"^run:{ID_PATTERN.pattern}$"},
    "actor": _NAME,
    "cause": _NAME,
    "first_sent_ms": {"minimum": 0, "exclusiveMaximum": MAX_TIME_MS},
}
"""What the scheduler asks of an envelope beside its types (`agents/scheduler/inbox.py`)."""


def commands_schema() -> Schema:
    """Of the value of a record in `commands`: the envelope, with the `data` that belong to its `type`."""
    known = Definitions()
    members, needed = known.members(Command)
    narrowed = {name: member | _NARROWER.get(name, {}) for name, member in members.items()}
    about = "The value of a record in the topic of commands; the key of the record is `stream`."
    return _document("commands", about, (narrowed, needed), RUN_COMMANDS, known)


def events_schema() -> Schema:
    """Of one event, as it stands in the body of a commit and in a line of `dagbok events --json`: its `type`, its
    `version`, and the `data` that belong to them."""
    known = Definitions()
    about = "An event, as it stands in the body of a commit and in a line of `dagbok events --json`."
    return _document("events", about, known.members(StoredEvent), EVENTS, known)


def _document(
    name: str,
    about: str,
    record: tuple[dict[str, Schema], list[Json]],
    kinds: Mapping[str, type[RunCommand] | type[Event]],
    known: Definitions,
) -> Schema:
    members, needed = record
    branches: list[Json] = [_branch(kind, struct, known) for kind, struct in kinds.items()]
    content: Schema = {
        "title": f"dagbok {name}",
        "description": about,
        "type": "object",
        "properties": {**members, "type": {"enum": list(kinds)}},
        "required": needed,
        "oneOf": branches,
        "$defs": known.schemas(),
    }
    id = f"urn:dagbok:schema:{name}:{SCHEMA_VERSION}:{digest(content)[:16]}"
    return {"$schema": DIALECT, "$id": id, **content}


def _branch(kind: str, struct: type[RunCommand] | type[Event], known: Definitions) -> Schema:
    told: Schema = {"type": {"const": kind}, "version": {"const": struct.version}, "data": known.refer(struct)}
    return {"title": kind, "properties": told}
