"""The rule of the log under everything that may be appended: readers agree, and nothing void changes one."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.events.commit import Seal, encode_value, split_value, value_hash
from dagbok.events.rule import GENESIS, Position, follow
from tests.spec.test_rule import SEAL
from tests.support.scale import scale

PARTITION = SEAL.partition
examples = settings(max_examples=scale(200, 4_000), deadline=None)

garbage = st.binary(max_size=60) | st.binary(max_size=30).map(lambda data: data + b"\n{}")


def _read(log: list[bytes], start: Position = GENESIS) -> list[Position]:
    """The position of a reader behind each record."""
    positions = [start]
    for offset in range(start.next_offset, len(log)):
        positions.append(follow(positions[-1], PARTITION, offset, log[offset])[0])
    return positions


def _head(position: Position) -> tuple[int, str, int]:
    return position.last_command_offset, position.head_hash, position.head_offset


def _commit(position: Position, writer: int, skip: int = 0) -> bytes:
    """What a writer who stands at `position` would append for the next command that it knows."""
    seal = msgspec.structs.replace(
        SEAL,
        actor=f"process:{writer}",
        after=position.last_command_offset,
        offset=position.next_offset,
        command_offset=position.last_command_offset + 1 + skip,
        prev=position.head_hash,
    )
    return encode_value(seal, b"{}")


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """What several writers appended, each at its own lag, with late, doubled, foreign and broken records among it."""
    log: list[bytes] = []
    for _ in range(draw(st.integers(1, 25))):
        positions = _read(log)
        kind = draw(st.sampled_from(("commit", "commit", "commit", "late", "again", "garbage", "foreign", "cut")))
        if kind == "garbage" or not log:
            log.append(draw(garbage) if kind == "garbage" else _commit(positions[-1], 0))
        elif kind == "again":
            log.append(draw(st.sampled_from(log)))
        elif kind == "cut":
            log.append(draw(st.sampled_from(log))[: draw(st.integers(0, 400))])
        elif kind == "foreign":
            log.append(_commit(positions[-1], 1).replace(b'"partition":3', b'"partition":2'))
        else:
            at = positions[-1] if kind == "commit" else draw(st.sampled_from(positions))
            log.append(_commit(at, draw(st.integers(0, 3)), draw(st.integers(0, 2))))
    return log


@examples
@given(logs())
def test_effective_commits_are_one_chain(log: list[bytes]) -> None:
    """Each names the one before and a later command: no command has two commits that count."""
    before, applied = GENESIS, -1
    for offset, value in enumerate(log):
        position, commit = follow(before, PARTITION, offset, value)
        assert position.next_offset == offset + 1
        if commit is None:
            assert _head(position) == _head(before)
        else:
            assert commit.seal.prev == before.head_hash
            assert commit.seal.command_offset > applied
            applied = commit.seal.command_offset
            assert _head(position) == (applied, value_hash(value), offset)
        before = position


@examples
@given(logs(), st.data())
def test_a_reader_that_goes_on_from_a_checkpoint_agrees_with_one_from_genesis(
    log: list[bytes], data: st.DataObject
) -> None:
    positions = _read(log)
    checkpoint = data.draw(st.sampled_from(positions))
    assert _read(log, checkpoint) == positions[checkpoint.next_offset :]


@examples
@given(logs())
def test_what_stands_in_a_void_record_makes_no_difference(log: list[bytes]) -> None:
    positions = _read(log)
    counts = [positions[offset + 1].head_hash != positions[offset].head_hash for offset in range(len(log))]
    assert _read([value if effective else b"" for value, effective in zip(log, counts, strict=True)]) == positions


@examples
@given(logs(), st.data())
def test_what_was_decided_on_an_older_history_comes_too_late(log: list[bytes], data: st.DataObject) -> None:
    """Whoever writes it, whenever it arrives, and whatever command it is for."""
    positions = _read(log)
    now = positions[-1]
    older = data.draw(st.sampled_from(positions))
    late = _commit(older, 9, data.draw(st.integers(0, 30)))
    position, commit = follow(now, PARTITION, len(log), late)
    assert (commit is None) == (_head(older) != _head(now) or older.next_offset != len(log))
    assert commit is not None or _head(position) == _head(now)


seals = st.builds(
    Seal,
    **{
        name: st.integers(-(2**40), 2**40) if isinstance(value, int) else st.text(max_size=20)
        for name, value in msgspec.structs.asdict(SEAL).items()
    },
)


@examples
@given(seals, st.binary(max_size=200))
def test_a_value_splits_into_what_it_was_made_of(seal: Seal, body: bytes) -> None:
    """Whatever the body: newlines in it do not matter, because a seal has none."""
    assert split_value(encode_value(seal, body)) == (seal, body)


@examples
@given(garbage)
def test_garbage_changes_no_reader(value: bytes) -> None:
    assert follow(GENESIS, PARTITION, 0, value) == (GENESIS.skip(0), None)
