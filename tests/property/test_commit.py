"""Bodies of commits: any events come back as they were written, small or large, and anything else is refused."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.events.body import COMPRESS_ABOVE_BYTES, decode_body, encode_body
from dagbok.events.errors import FormatTooNew, LogCorrupt
from dagbok.events.run.events import EVENTS, Event, RunPaused
from tests.support.scale import scale
from tests.support.strategies import any_of

examples = settings(max_examples=scale(200, 4_000), deadline=None)

events = st.one_of([any_of(event) for event in EVENTS.values()])


@examples
@given(st.lists(events, min_size=1, max_size=4))
def test_events_come_back_as_they_were_written(written: list[Event]) -> None:
    try:
        stored, codec, raw_size = encode_body(written)
        msgspec.json.decode(msgspec.json.encode(written))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return  # a raw text in it is no JSON: a decider lets none through
    assert decode_body(stored, codec, raw_size) == written


@examples
@given(st.text(min_size=1, max_size=50))
def test_large_bodies_are_compressed_and_come_back(line: str) -> None:
    text = line * COMPRESS_ABOVE_BYTES
    stored, codec, raw_size = encode_body([RunPaused(text)])
    assert codec == "json+zstd"
    assert raw_size > COMPRESS_ABOVE_BYTES
    assert decode_body(stored, codec, raw_size) == [RunPaused(text)]


@examples
@given(st.binary(max_size=200), st.sampled_from(("json", "json+zstd")), st.integers(0, 300))
def test_bytes_that_are_no_body_are_told_as_such(stored: bytes, codec: str, raw_size: int) -> None:
    with pytest.raises(LogCorrupt):
        decode_body(stored, codec, raw_size)


@examples
@given(st.integers(), st.binary(min_size=1, max_size=3), st.integers(0, 500))
def test_a_body_with_altered_bytes_is_refused_or_reads_as_something_else(seed: int, put: bytes, place: int) -> None:
    """Whether it was altered, only its hash tells; but no altered body takes a reader down in another way."""
    stored, codec, raw_size = encode_body([RunPaused(str(seed)), RunPaused("x" * 20)])
    altered = stored[:place] + put + stored[place + len(put) :]
    with suppress(LogCorrupt, FormatTooNew):
        decode_body(altered, codec, raw_size)


@pytest.mark.parametrize(
    ("stored", "codec"),
    [
        (b'{"events":[{"type":"RunImproved","version":1,"data":{}}]}', "json"),
        (b'{"events":[{"type":"RunPaused","version":99,"data":{}}]}', "json"),
        (b'{"events":[]}', "json+brotli"),
    ],
)
def test_what_a_newer_version_wrote_halts_the_reader(stored: bytes, codec: str) -> None:
    with pytest.raises(FormatTooNew):
        decode_body(stored, codec, len(stored))
