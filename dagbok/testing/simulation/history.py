"""What happened in a simulation, line by line, and how it is printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

import msgspec

from dagbok.events.body import decode_body
from dagbok.events.commit import split_value
from dagbok.events.envelope import decode_command
from dagbok.events.errors import DagbokError
from dagbok.events.log.port import COMMANDS, StoredRecord, Topic
from dagbok.events.rule import GENESIS, follow
from dagbok.events.run import events as e

MOST_LINES = 250
IDS = ("task", "epoch", "code", "process", "graph_revision")


class Line(msgspec.Struct, frozen=True):
    """Something that happened: virtual seconds, who, what."""

    at_s: float
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.at_s:9.3f} s  {self.who:<14} {self.what}"


class History:
    """Follows the log as it grows, and is told the rest. With `keep` false it does nothing."""

    def __init__(self, now_s: Callable[[], float], *, keep: bool) -> None:
        self._now_s, self.keep = now_s, keep
        self._position = GENESIS
        self.lines: list[Line] = []

    def tell(self, who: str, what: str) -> None:
        """Note a line."""
        if self.keep:
            self.lines.append(Line(self._now_s(), who, what))

    def landed(self, topic: Topic, record: StoredRecord) -> None:
        """A record is in the log."""
        if not self.keep:
            return
        if topic == COMMANDS:
            self.tell("commands", f"[{record.offset}] {command_line(record.value)}")
            return
        self._position, commit = follow(self._position, 0, record.offset, record.value)
        by = record.headers.get("writer", "?")
        parts = split_value(record.value)
        if commit is None:
            of = "" if parts is None else f", for commands[{parts[0].command_offset}]"
            self.tell("events", f"[{record.offset}] by {by}: VOID{of}")
            return
        body = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
        said = ", ".join(event_line(event) for event in body)
        self.tell("events", f"[{record.offset}] by {by}, for commands[{commit.seal.command_offset}]: {said}")


def command_line(value: bytes) -> str:
    """A command in one line."""
    try:
        command = decode_command(value)
    except msgspec.MsgspecError:
        return "no command"
    data = msgspec.json.decode(bytes(command.data))
    named = [f"{name}={data[name]}" for name in ("task", "epoch", "kind") if isinstance(data, dict) and name in data]
    claim = data.get("claim") if isinstance(data, dict) else None
    if isinstance(claim, list):
        named.append(f"claim={claim[0]}/{claim[1]}")
    outcome = data.get("outcome") if isinstance(data, dict) else None
    if isinstance(outcome, dict):
        named.append(str(outcome.get("kind")))
    report = data.get("report") if isinstance(data, dict) else None
    if isinstance(report, dict):
        named.append(str(report.get("verdict")))
    who = "" if command.actor.startswith("process:") else f" by {command.actor}"
    return f"{command.type} {command.stream} {' '.join(named)} (id {command.id[-12:]}){who}"


def event_line(event: e.Event) -> str:
    """An event in a few words."""
    ids = [f"{name}={getattr(event, name)}" for name in IDS if name in event.__struct_fields__]
    if isinstance(event, e.TasksAdded):
        ids.append("+".join(entry.spec.id for entry in event.tasks))
    return f"{type(event).__name__}({' '.join(ids)})" if ids else type(event).__name__


def shown(lines: Sequence[Line]) -> str:
    """The lines, the middle left out when they are very many."""
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        return "\n".join(
            [*map(str, lines[:half]), f"… {len(lines) - 2 * half} lines left out …", *map(str, lines[-half:])]
        )
    return "\n".join(map(str, lines))


def digest_of(commands: Sequence[StoredRecord], events: Sequence[StoredRecord]) -> str:
    """One hash over everything that is in the log, with the times of the appends."""
    whole = sha256()
    for record in (*commands, *events):
        whole.update(f"{record.offset} {record.append_ms} {record.key}\n".encode() + record.value + b"\n")
    return whole.hexdigest()


def said(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}" if not isinstance(error, DagbokError) else str(error)
