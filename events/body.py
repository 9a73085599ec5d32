"""The body of a commit: its events as JSON, compressed when large (`messages.md`, section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
import zstandard

from dagbok.events.errors import FormatTooNew, LogCorrupt
from dagbok.events.run.events import EVENTS, Event
from dagbok.events.upcasters import upcast

Codec = Literal["json", "json+zstd"]

COMPRESS_ABOVE_BYTES: Final = 16 * 1024
MAX_RAW_BYTES: Final = 32 * 1024 * 1024
MAX_STORED_BYTES: Final = 8 * 1024 * 1024


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """An event as it was recorded: its type, the version it has in the log, and its JSON (a view into the body)."""

    type: str
    version: int
    data: msgspec.Raw


class _Body(msgspec.Struct, frozen=True, gc=False):
    events: tuple[StoredEvent, ...]


_encode = msgspec.json.Encoder().encode
_decode_body = msgspec.json.Decoder(_Body).decode
_decoders = {name: msgspec.json.Decoder(event).decode for name, event in EVENTS.items()}
_heads = {
    event: b'{"type":"%s","version":%d,"data":' % (event.__name__.encode(), event.version) for event in EVENTS.values()
}


class TooLarge(ValueError):
    """The body is above 32 MiB, or above 8 MiB when compressed."""


def encode_body(events: Sequence[Event]) -> tuple[bytes, Codec, int]:
    """Stored bytes, codec, and bytes before compression. Raises `TooLarge`."""
    items = b",".join([_heads[type(event)] + _encode(event) + b"}" for event in events])
    raw = b'{"events":[' + items + b"]}"
    if len(raw) <= COMPRESS_ABOVE_BYTES:
        return raw, "json", len(raw)
    stored = compress(raw)
    if len(raw) > MAX_RAW_BYTES or len(stored) > MAX_STORED_BYTES:
        raise TooLarge(f"a commit of {len(raw)} bytes ({len(stored)} stored) is above the limit")
    return stored, "json+zstd", len(raw)


def compress(raw: bytes) -> bytes:
    """As bodies are."""
    return zstandard.ZstdCompressor(level=3).compress(raw)


def decode_body(stored: bytes | memoryview, codec: str, raw_size: int) -> list[Event]:
    """The events of an effective commit, at their present versions.

    Raises `FormatTooNew` for a codec, type or version that this code does not know: the reader must halt, because
    going on without the event would give a wrong state. Raises `LogCorrupt` when the bytes are no body.
    """
    return [decode_event(item) for item in stored_events(stored, codec, raw_size)]


def stored_events(stored: bytes | memoryview, codec: str, raw_size: int) -> tuple[StoredEvent, ...]:
    """The events of an effective commit as they were recorded, of any version. Raises like `decode_body`."""
    raw = _decompress(stored, codec, raw_size)
    try:
        return _decode_body(raw).events
    except msgspec.MsgspecError as error:
        raise LogCorrupt(f"the body of an effective commit cannot be read: {error}") from error


def decode_event(item: StoredEvent) -> Event:
    """The event at its present version. Raises like `decode_body`."""
    event = EVENTS.get(item.type)
    if event is None or item.version > event.version:
        raise FormatTooNew(f"event {item.type} version {item.version} is not known to this dagbok")
    data = (
        item.data if item.version == event.version else upcast(item.type, item.version, event.version, bytes(item.data))
    )
    try:
        return _decoders[item.type](data)
    except msgspec.MsgspecError as error:
        raise LogCorrupt(f"event {item.type} of an effective commit cannot be read: {error}") from error


def _decompress(stored: bytes | memoryview, codec: str, raw_size: int) -> bytes | memoryview:
    if codec == "json":
        return stored
    if codec != "json+zstd":
        raise FormatTooNew(f"codec {codec!r} is not known to this dagbok")
    if raw_size > MAX_RAW_BYTES:
        raise LogCorrupt(f"a body of {raw_size} bytes is above the limit")
    try:
        return zstandard.ZstdDecompressor().decompress(stored, max_output_size=raw_size)
    except zstandard.ZstdError as error:
        raise LogCorrupt(f"the body of an effective commit cannot be decompressed: {error}") from error
