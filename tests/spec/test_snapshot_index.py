"""Runs that are closed for long: listed in chunks beside the manifest, found there, and let go of."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from dagbok.events.body import decode_body
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS
from dagbok.events.run.commands import PauseRun
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.reading import read_effective
from dagbok.projections.snapshots import index
from dagbok.projections.snapshots.keeper import SnapshotKeeper
from dagbok.projections.snapshots.manifest import IndexChunk, Manifest, decode_manifest, encode_manifest
from dagbok.projections.snapshots.roots import roots_of
from dagbok.projections.snapshots.slots import FileSlots
from dagbok.testing import act
from dagbok.testing.make import candidate, start, task
from tests.support.logbuilder import LogBuilder
from tests.support.snapshotting import fold, image, keeper_in


async def snapshot(keeper: SnapshotKeeper, state: PartitionState) -> None:
    """Take one now."""
    keeper.note(state, None, (), 10**9)
    keeper.save_if_due(state)
    await keeper.settled()


def close_run(builder: LogBuilder, name: str) -> None:
    """A run of one task from its start to its end."""
    builder.send(name, start(task("only")))
    builder.send(name, act.submit_outcome(builder.run(name), "only", candidate(name)))
    builder.send(name, act.submit_verdict(builder.run(name), "only", "pass"))


class Story:
    """A log that grows, and the keeper and state of its owner."""

    def __init__(self, folder: Path) -> None:
        self.builder, self.log, self.folder = LogBuilder(), MemoryLog(), folder
        self.keeper = keeper_in(folder, self.log, cold_after_ms=1_000)
        self.state = PartitionState(0)
        self.builder.send("open", start(task("only")))

    async def go_on(self) -> None:
        """Fold what was written, and take snapshots when all of it is old: what the first one has may then leave."""
        self.builder.now_ms += 10_000
        self.builder.send("open", PauseRun())
        end = (await self.log.bounds(EVENTS, 0)).end
        await self.log.append(EVENTS, 0, self.builder.records[end:])
        while True:
            position, commits = await read_effective(self.log, 0, self.state.position, 100)
            if not commits:
                break
            await self.keeper.warm(self.state, [commit.seal.stream or "" for commit in commits])
            for commit in commits:
                events = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
                apply(self.state, commit, events)
                self.keeper.note(self.state, commit.seal.stream, events, 0)
            self.state.position = position
        await snapshot(self.keeper, self.state)
        await snapshot(self.keeper, self.state)

    def newest(self) -> Manifest:
        """The manifest on the disk."""
        found = [decode_manifest(data) for data in FileSlots(self.folder, 0).read()]
        return max([manifest for manifest in found if manifest is not None], key=lambda manifest: manifest.number)

    async def check(self) -> None:
        """What a fresh owner loads is what was written, cold runs included, and no part is left over."""
        keeper = keeper_in(self.folder, self.log, cold_after_ms=1_000)
        state = await keeper.load()
        for stream in self.builder.state.runs:
            assert (keeper.peek(stream) is None) == (stream in state.runs)
            keeper.thaw(state, stream)
        assert image(state) == image(self.builder.state)
        files = {path.name for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".manifest"}
        assert {key.sha256 for key in keeper.roots()} == files
        store = local_store(self.folder).within(SNAPSHOT_CHUNKS)
        assert {key.sha256 for key in roots_of(FileSlots(self.folder, 0), store)} == files


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Three runs a chunk."""
    monkeypatch.setattr(index, "CHUNK_RUNS", 3)
    return Story(tmp_path)


async def test_runs_that_are_closed_for_long_leave_the_manifest_and_full_chunks_stay_as_they_are(story: Story) -> None:
    sizes, chunks = list[int](), list[tuple[IndexChunk, ...]]()
    for number in range(12):
        close_run(story.builder, f"run-{number:02}")
        await story.go_on()
        if number > 2:
            sizes.append(len(encode_manifest(msgspec.structs.replace(story.newest(), closed=()))))
            chunks.append(tuple(chunk for chunk in story.newest().closed if chunk.runs == 3))
        await story.check()
    assert max(sizes) - min(sizes) < 10, "digits of numbers"
    assert [len(full) for full in chunks] == [count // 3 for count in range(4, 13)]
    for earlier, later in pairwise(chunks):
        assert later[: len(earlier)] == earlier


async def test_a_run_of_a_chunk_that_goes_on_leaves_it_and_returns_to_another(story: Story) -> None:
    for number in range(8):
        close_run(story.builder, f"run-{number}")
        await story.go_on()
    for name in ("run-1", "run-4", "run-1"):
        assert set(story.state.runs) == {"run:open"}
        chunks = story.newest().closed
        story.builder.send(name, PauseRun())  # refused, but a commit of its stream
        await story.go_on()
        assert sum([chunk.runs for chunk in story.newest().closed]) == 8
        assert len(set(story.newest().closed) - set(chunks)) <= 2, "the one that it left, and the last"
        assert story.newest().closed != chunks
        await story.check()


async def test_a_run_that_came_back_and_did_nothing_leaves_again(story: Story) -> None:
    for number in range(3):
        close_run(story.builder, f"run-{number}")
        await story.go_on()
    await story.go_on()
    closed = story.newest().closed
    await story.keeper.warm(story.state, ["run:run-1", "run:nobody"])
    assert set(story.state.runs) == {"run:open", "run:run-1"}
    await story.go_on()
    assert (set(story.state.runs), story.newest().closed) == ({"run:open"}, closed)
    await story.check()


async def test_a_manifest_of_the_first_format_is_read(story: Story) -> None:
    for number in range(3):
        close_run(story.builder, f"run-{number}")
    builder, keeper = story.builder, keeper_in(story.folder, story.log)
    await story.log.append(EVENTS, 0, builder.records)
    await snapshot(keeper, await fold(story.log, keeper, save=False))
    old = msgspec.to_builtins(story.newest())
    assert not old.pop("closed")
    body = msgspec.json.encode({**old, "v": 1})
    FileSlots(story.folder, 0).write(old["number"] % 2, sha256(body).hexdigest().encode() + b"\n" + body)
    await story.check()


async def test_a_damaged_chunk_makes_recovery_read_everything(story: Story) -> None:
    for number in range(5):
        close_run(story.builder, f"run-{number}")
        await story.go_on()
    key = story.newest().closed[0].key.sha256
    (path,) = story.folder.rglob(key)
    path.write_bytes(b"damaged")
    keeper = keeper_in(story.folder, story.log)
    assert (await keeper.load()).position.next_offset == 0
    assert image(await fold(story.log, keeper, save=False)) == image(story.builder.state)
