"""How events are compared with what a test expects, and how a difference is shown."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import ndiff

import msgspec

from dagbok.events.run.events import Event


class Like(msgspec.Struct, frozen=True):
    """Any event of one type that has the named values; made by `like`."""

    event: type[Event]
    fields: dict[str, object]


Expected = Event | type[Event] | Like
"""One event of a test: exactly this one, any of this type, or any that is `like` it."""


def like(event: type[Event], **fields: object) -> Like:
    """Expect an event of this type with these values, whatever its other fields are.

    Raises `TypeError` for a field that the event does not have.
    """
    unknown = sorted(set(fields) - set(event.__struct_fields__))
    if unknown:
        raise TypeError(f"{event.__name__} has no field {', '.join(unknown)}")
    return Like(event, fields)


def matches(expected: Expected, event: Event) -> bool:
    """Whether the event is what the test expects."""
    if isinstance(expected, Like):
        return type(event) is expected.event and all(
            getattr(event, name) == value for name, value in expected.fields.items()
        )
    if isinstance(expected, type):
        return type(event) is expected
    return expected == event


def difference(expected: Sequence[Expected], events: Sequence[Event]) -> str | None:
    """None when the events are the expected ones; else both, line by line: `-` was expected, `+` came."""
    if len(expected) == len(events) and all(map(matches, expected, events)):
        return None
    pairs = [(one, events[index] if index < len(events) else None) for index, one in enumerate(expected)]
    wanted = [line for one, event in pairs for line in _shown_expected(one, event)]
    came = [line for event in events for line in shown(event)]
    return "\n".join(line for line in ndiff(wanted, came) if not line.startswith("?"))


def shown(event: Event) -> list[str]:
    """The event as lines: its type, then each field that is not its default."""
    values = {name: getattr(event, name) for name in event.__struct_fields__}
    defaults = _defaults(type(event))
    fields = {name: value for name, value in values.items() if name not in defaults or defaults[name] != value}
    return _lines(type(event), fields)


def _shown_expected(expected: Expected, event: Event | None) -> list[str]:
    if event is not None and matches(expected, event):
        return shown(event)
    if isinstance(expected, Like):
        return _lines(expected.event, expected.fields)
    return _lines(expected, {}) if isinstance(expected, type) else shown(expected)


def _lines(event: type[Event], fields: dict[str, object]) -> list[str]:
    return [event.__name__, *(f"    {name} = {_text(value)}" for name, value in fields.items())]


def _text(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, UnicodeError, ValueError):
        return repr(value)


def _defaults(event: type[Event]) -> dict[str, object]:
    return {field.name: field.default for field in msgspec.structs.fields(event)}
