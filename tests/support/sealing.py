"""Commits made by hand: what no scheduler of this version would write, but a newer, a broken or a late one might."""

from __future__ import annotations

import msgspec

from dagbok.events.commit import Seal, encode_value, split_value
from dagbok.events.ids import ZERO_HASH
from tests.support.logbuilder import LogBuilder


def next_value(builder: LogBuilder, body: bytes, *, count: int = 1, **changes: object) -> bytes:
    """An effective commit with `body` behind all that was written. `changes`: other values in its seal."""
    seal = _last_seal(builder)
    position = builder.state.position
    after = position.last_command_offset
    fields: dict[str, object] = {
        "after": after,
        "offset": position.next_offset,
        "prev": position.head_hash,
        "command_offset": after + 1,
        "codec": "json",
        "count": count,
        "raw_size": len(body),
        "stream": None,
        "stream_prev": ZERO_HASH,
        "stream_seq": 0,
    }
    return encode_value(msgspec.structs.replace(seal, **{**fields, **changes}), body)


def body(*events: tuple[str, int, str]) -> bytes:
    """The body of a commit: type, version and JSON of each event."""
    items = ",".join(f'{{"type":"{type}","version":{version},"data":{data}}}' for type, version, data in events)
    return f'{{"events":[{items}]}}'.encode()


def _last_seal(builder: LogBuilder) -> Seal:
    for record in reversed(builder.records):
        if (parts := split_value(record.value)) is not None:
            return parts[0]
    raise AssertionError("write a commit first")
