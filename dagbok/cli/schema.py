"""`dagbok schema commands` and `events`: JSON Schema of the messages, for programs in other languages."""

from __future__ import annotations

import msgspec
from cyclopts import App, Group

from dagbok.cli import say
from dagbok.cli.options import Output

INDENT = 2


def add_to(app: App, group: Group) -> None:
    """Add the two commands."""
    schema = App(name="schema", group=group, help="Print JSON Schema of what stands in the topics.")
    schema.command(commands)
    schema.command(events)
    app.command(schema)


def commands(*, output: Output | None = None) -> int:
    """Print the JSON Schema of commands: what other programs may send.

    One schema of the whole value of a record: the envelope, with the data
    that belong to its type. docs/other-languages.md says how to send it.

    To keep it: dagbok schema commands > commands.schema.json
    """
    from dagbok.events.schema import commands_schema

    return _print(commands_schema(), output)


def events(*, output: Output | None = None) -> int:
    """Print the JSON Schema of events: what other programs may read.

    One schema of an event, with the data that belong to its type, as it
    stands in the log and as "dagbok events --json" prints it.

    To keep it: dagbok schema events > events.schema.json
    """
    from dagbok.events.schema import events_schema

    return _print(events_schema(), output)


def _print(schema: object, output: Output | None) -> int:
    if output is not None and output.json:
        say.out_json(schema)
    else:
        say.out(msgspec.json.format(msgspec.json.encode(schema), indent=INDENT).decode())
    return 0
