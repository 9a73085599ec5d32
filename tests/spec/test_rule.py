"""Which records of `events` count, for whoever reads them (architecture, section 3.2)."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.commit import MAX_SEAL_BYTES, Seal, encode_value, value_hash
from dagbok.events.errors import FormatTooNew
from dagbok.events.ids import ZERO_HASH
from dagbok.events.rule import GENESIS, Position, follow

PARTITION = 3
SEAL = Seal(
    actor="user:ann",
    after=-1,
    cause=None,
    codec="json",
    command_hash="c" * 64,
    command_id="command-1",
    command_offset=0,
    command_type="PauseRun",
    count=1,
    first_sent_ms=1,
    now_ms=2,
    offset=0,
    partition=PARTITION,
    prev=ZERO_HASH,
    project="docs",
    raw_size=2,
    stream="run:r",
    stream_prev=ZERO_HASH,
    stream_seq=1,
    tenant="acme",
)
FIRST = encode_value(SEAL, b"{}")
AFTER_FIRST = Position(1, 0, value_hash(FIRST), 0)


def _second(**changes: object) -> bytes:
    seal = msgspec.structs.replace(SEAL, after=0, offset=1, command_offset=1, prev=value_hash(FIRST))
    return encode_value(msgspec.structs.replace(seal, **changes), b"{}")


def test_a_commit_on_the_history_of_the_reader_counts() -> None:
    position, commit = follow(GENESIS, PARTITION, 0, FIRST)
    assert commit is not None
    assert (commit.offset, commit.hash, commit.seal, commit.stored_body) == (0, value_hash(FIRST), SEAL, b"{}")
    assert position == AFTER_FIRST


def test_void_records_before_it_only_move_the_next_offset() -> None:
    value = _second(offset=8)
    position, commit = follow(AFTER_FIRST.skip(7), PARTITION, 8, value)
    assert commit is not None
    assert position == Position(9, 1, value_hash(value), 8)


def test_it_counts_only_where_it_was_decided_to_stand() -> None:
    """Its events may name the offsets of others, which are true only if all stand where their writer thought."""
    assert follow(AFTER_FIRST.skip(7), PARTITION, 8, _second()) == (AFTER_FIRST.skip(7).skip(8), None)


def test_a_seal_of_the_first_version_says_nothing_of_its_offset() -> None:
    assert follow(AFTER_FIRST.skip(7), PARTITION, 8, _second(v=1, offset=None))[1] is not None
    assert follow(AFTER_FIRST.skip(7), PARTITION, 8, _second(offset=None))[1] is None


def test_commands_may_have_been_deleted_in_between() -> None:
    """Offsets of commands need not be dense: what counts is that none was decided in between."""
    assert follow(AFTER_FIRST, PARTITION, 1, _second(command_offset=40))[1] is not None


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(FIRST, id="the same commit again"),
        pytest.param(_second(after=-1), id="another command was applied since"),
        pytest.param(_second(after=5), id="a command was applied that the reader does not know"),
        pytest.param(_second(prev=ZERO_HASH), id="decided on the genesis"),
        pytest.param(_second(prev="d" * 64), id="decided on a head that is not effective"),
        pytest.param(_second(partition=4), id="of another partition"),
        pytest.param(_second(command_offset=0), id="of the command that was applied before"),
        pytest.param(_second(command_offset=-1), id="of an earlier command"),
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no newline"),
        pytest.param(b"\n{}", id="no seal"),
        pytest.param(b"[]\n{}", id="a seal of another shape"),
        pytest.param(b"\xff\xfe\n{}", id="no text"),
        pytest.param(_second().replace(b'"after":0', b'"after":0.5'), id="a seal with a fraction"),
        pytest.param(_second().replace(b'"after":0,', b""), id="a seal with a field missing"),
        pytest.param(b" " * MAX_SEAL_BYTES + _second(), id="a seal above its limit"),
    ],
)
def test_everything_else_is_void_for_everybody(late: bytes) -> None:
    """Skipped: the reader stands behind it, with the same history as before."""
    assert follow(AFTER_FIRST, PARTITION, 1, late) == (AFTER_FIRST.skip(1), None)


def test_both_conditions_are_needed() -> None:
    """With `after` alone, a commit on a void head would count; with `prev` alone, one that skipped a command."""
    for changes in ({"prev": "d" * 64}, {"after": -1}):
        assert follow(AFTER_FIRST, PARTITION, 1, _second(**changes))[1] is None


def test_the_hash_covers_seal_and_body() -> None:
    assert value_hash(FIRST) != value_hash(FIRST + b" ")
    assert value_hash(FIRST) != value_hash(encode_value(msgspec.structs.replace(SEAL, now_ms=3), b"{}"))


def test_the_body_is_not_read_to_decide_whether_a_commit_counts() -> None:
    _, commit = follow(AFTER_FIRST, PARTITION, 1, _second() + b" broken body \xff\n\n")
    assert commit is not None
    assert commit.stored_body == b"{} broken body \xff\n\n"


def test_a_newer_seal_that_counts_halts_the_reader() -> None:
    """Going on without it would give a wrong state."""
    with pytest.raises(FormatTooNew, match="version 3"):
        follow(AFTER_FIRST, PARTITION, 1, _second(v=3))
    assert follow(AFTER_FIRST, PARTITION, 1, _second(v=3, after=-1)) == (AFTER_FIRST.skip(1), None)


def test_a_newer_seal_may_have_more_fields() -> None:
    value = _second(v=3).replace(b'"actor"', b'"aaa":{"new":1},"actor"')
    with pytest.raises(FormatTooNew):
        follow(AFTER_FIRST, PARTITION, 1, value)


def test_a_seal_is_one_line_of_canonical_json() -> None:
    """Sorted keys, no spaces: the same seal is the same bytes, whoever writes it."""
    line = FIRST.split(b"\n")[0]
    fields = msgspec.json.decode(line)
    assert list(fields) == sorted(fields)
    assert line == msgspec.json.encode(fields)


def test_a_seal_above_its_limit_is_not_written() -> None:
    with pytest.raises(ValueError, match="8192"):
        encode_value(msgspec.structs.replace(SEAL, actor="a" * MAX_SEAL_BYTES), b"{}")
