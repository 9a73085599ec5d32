"""What a record of `commands` says: a command for a stream of this partition, or the reason why it is none.

Every offset gets one commit, so whatever cannot be read becomes a refusal too (`docs/design/architecture.md`, section
3.2).
"""

from __future__ import annotations

import msgspec

from dagbok.events.body import compress
from dagbok.events.codes import Code
from dagbok.events.envelope import ENVELOPE_VERSION, MAX_FIELD_CHARS, MAX_TIME_MS, Command, decode_command
from dagbok.events.errors import Refused
from dagbok.events.ids import ID_PATTERN, partition_of
from dagbok.events.log.port import StoredRecord
from dagbok.events.run.commands import CLIENT_COMMANDS, RUN_COMMANDS, RunCommand, decode_run_command
from dagbok.projections.partition import REMEMBER_MS

MAX_CLOCK_AHEAD_MS = 5 * 60 * 1000
MAX_AGE_MS = REMEMBER_MS // 2
PLAIN_FIELD_CHARS = 100
"""Seven fields of this length fit into a seal however they are escaped."""
MAX_FIELDS_BYTES = 5 * 1024
MAX_COMMAND_BYTES = 24 * 1024 * 1024
MAX_COMPRESSED_BYTES = 7 * 1024 * 1024
"""What is larger could not be committed; finding that out after deciding it would cost a fold of the whole
partition."""

NOBODY = Command(
    type="", version=0, id="", tenant="", project="", stream="", actor="", first_sent_ms=0, data=msgspec.Raw(b"null")
)
"""Stands for the sender of what cannot be read."""


class Unreadable(Exception):
    """The record is no command: there is nobody to name as its sender."""


def read_envelope(record: StoredRecord) -> Command:
    """The envelope of a record. Raises `Unreadable` when there is none that a seal could name."""
    try:
        command = decode_command(record.value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"no command envelope: {error}") from error
    longest = max(
        len(command.type),
        len(command.id),
        len(command.tenant),
        len(command.project),
        len(command.stream),
        len(command.actor),
        len(command.cause or ""),
    )
    if longest > MAX_FIELD_CHARS:
        raise Unreadable(f"a field of the envelope is longer than {MAX_FIELD_CHARS} characters")
    if longest > PLAIN_FIELD_CHARS and _escaped_bytes(command) > MAX_FIELDS_BYTES:
        raise Unreadable(f"the fields of the envelope take more than {MAX_FIELDS_BYTES} bytes in a seal")
    if not 0 <= command.first_sent_ms < MAX_TIME_MS:
        raise Unreadable(f"first_sent_ms is no time: {command.first_sent_ms}")
    return command


def _escaped_bytes(command: Command) -> int:
    texts = (command.type, command.id, command.tenant, command.project, command.stream, command.actor, command.cause)
    return len(msgspec.json.encode(texts))


def read_data(command: Command, record: StoredRecord, partition: int, partitions: int) -> RunCommand:
    """The command itself. Raises `Refused` with the reason why this partition does not decide it."""
    if command.v > ENVELOPE_VERSION:
        raise Refused(Code.UNSUPPORTED, f"envelope version {command.v} is not known here")
    if not ID_PATTERN.fullmatch(command.tenant) or not ID_PATTERN.fullmatch(command.project):
        raise Refused(Code.IDENTITY_REQUIRED, "a command names its tenant and project as ids")
    if not command.id:
        raise Refused(Code.UNDECODABLE, "a command has an id")
    if partition_of(command.stream, partitions) != partition:
        raise Refused(Code.WRONG_PARTITION, f"stream {command.stream} does not live on partition {partition}")
    _check_time(command, record.append_ms)
    _check_size(record.value)
    known = RUN_COMMANDS.get(command.type)
    if known is None or command.version > known.version or not command.stream.startswith("run:"):
        raise Refused(
            Code.UNSUPPORTED, f"{command.type} version {command.version} for {command.stream} is not known here"
        )
    if not ID_PATTERN.fullmatch(command.stream.removeprefix("run:")):
        raise Refused(Code.UNDECODABLE, "the stream names no valid run id")
    try:
        return decode_run_command(command.type, command.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(Code.UNDECODABLE, f"{command.type}: {error}") from error


def _check_size(value: bytes) -> None:
    if len(value) > MAX_COMMAND_BYTES or (
        len(value) > MAX_COMPRESSED_BYTES and len(compress(value)) > MAX_COMPRESSED_BYTES
    ):
        raise Refused(Code.TOO_LARGE, f"a command of {len(value)} bytes is above the limit")


def _check_time(command: Command, append_ms: int) -> None:
    if command.first_sent_ms > append_ms + MAX_CLOCK_AHEAD_MS:
        ahead_s = (command.first_sent_ms - append_ms) // 1000
        raise Refused(Code.CLOCK_AHEAD, f"the sender's clock is {ahead_s} s ahead of the log's")
    if command.type in CLIENT_COMMANDS and command.first_sent_ms < append_ms - MAX_AGE_MS:
        raise Refused(
            Code.TOO_OLD, f"first sent {(append_ms - command.first_sent_ms) // 1000} s before it was appended"
        )
