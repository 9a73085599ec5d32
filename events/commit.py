"""A commit: the events that one command caused, in one record. Value = seal, newline, body (`messages.md`, section 1).

The seal is one line of canonical JSON and alone decides whether the commit counts (`rule.py`).
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

SEAL_VERSION: Final = 2
"""1 had no `offset`; it is read as before."""
MAX_SEAL_BYTES: Final = 8 * 1024


class Seal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a commit says of itself. Fields stand in the order of their names: msgspec then writes them sorted.

    `after` and `prev` are the history it was decided on: the command offset applied before, and the hash of the last
    effective commit of the partition; `offset` is where it was decided to stand, none before version 2. `stream_seq` is
    the number of its first event in its stream (from 1); `stream` is none, and `stream_seq` 0, for a refusal that
    belongs to no stream. Times are milliseconds since 1970.
    """

    actor: str
    after: int
    cause: str | None
    codec: str
    command_hash: str
    command_id: str
    command_offset: int
    command_type: str
    count: int
    first_sent_ms: int
    now_ms: int
    offset: int | None = None
    partition: int
    prev: str
    project: str
    raw_size: int
    stream: str | None
    stream_prev: str
    stream_seq: int
    tenant: str
    v: int = SEAL_VERSION


class Commit(msgspec.Struct, frozen=True, gc=False):
    """A commit before its body is decoded: where it stands, what its value hashes to, its seal, its stored body; and,
    outside the hash, the `traceparent` of its command, as far as whoever reads it has looked at headers."""

    offset: int
    hash: str
    seal: Seal
    stored_body: bytes
    traceparent: str | None = None


_encode_seal = msgspec.json.Encoder().encode
_decode_seal = msgspec.json.Decoder(Seal).decode


def encode_value(seal: Seal, stored_body: bytes) -> bytes:
    """The record value. Raises `ValueError` when the seal is above 8 KiB."""
    line = _encode_seal(seal)
    if len(line) > MAX_SEAL_BYTES:
        raise ValueError(f"a seal of {len(line)} bytes is above {MAX_SEAL_BYTES}")
    return line + b"\n" + stored_body


def value_hash(value: bytes) -> str:
    """SHA-256 over seal and body: what the next commit names as `prev`."""
    return sha256(value).hexdigest()


def split_value(value: bytes) -> tuple[Seal, bytes] | None:
    """Seal and stored body, or none when there is no valid seal: then the record is void for everybody."""
    end = value.find(b"\n", 0, MAX_SEAL_BYTES + 1)
    if end < 0:
        return None
    try:
        return _decode_seal(value[:end]), value[end + 1 :]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
