"""A damaged snapshot is never an error: recovery takes the one before, or reads everything."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from dagbok.events.errors import StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.projections.artifacts import files
from dagbok.projections.artifacts.local import LocalBlobs
from dagbok.projections.snapshots.slots import FileSlots
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.snapshotting import fold, image, keeper_in


@pytest.fixture
def builder() -> LogBuilder:
    return random_history(seed=14, steps=60)


@pytest.fixture
async def log(builder: LogBuilder) -> MemoryLog:
    return await builder.log()


def manifests(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.manifest"), key=lambda path: path.stat().st_mtime_ns)


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".manifest"]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in parts(folder)]


async def test_two_slots_are_used_in_turn_and_no_part_is_left_over(
    builder: LogBuilder, log: MemoryLog, tmp_path: Path
) -> None:
    keeper = keeper_in(tmp_path, log)
    await fold(log, keeper)
    assert sorted(path.name for path in manifests(tmp_path)) == ["0-0.manifest", "0-1.manifest"]
    assert len({key.sha256 for key in keeper.roots()}) == len([size for size in sizes(tmp_path) if size])


@pytest.mark.parametrize("damaged", [1, 2], ids=["the newest", "both"])
@pytest.mark.parametrize("damage", [flip, lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
async def test_a_damaged_manifest_is_passed_over(
    damage: Callable[[Path], None], damaged: int, builder: LogBuilder, log: MemoryLog, tmp_path: Path
) -> None:
    await fold(log, keeper_in(tmp_path, log))
    for path in manifests(tmp_path)[-damaged:]:
        damage(path)
    assert image(await fold(log, keeper_in(tmp_path, log), save=False)) == image(builder.state)


@pytest.mark.parametrize("damage", [flip, lambda path: path.unlink()])
async def test_damaged_parts_are_found_out(
    damage: Callable[[Path], None], builder: LogBuilder, log: MemoryLog, tmp_path: Path
) -> None:
    await fold(log, keeper_in(tmp_path, log))
    for path in parts(tmp_path):
        damage(path)
    assert image(await fold(log, keeper_in(tmp_path, log), save=False)) == image(builder.state)


async def test_a_snapshot_of_another_log_is_not_taken(builder: LogBuilder, log: MemoryLog, tmp_path: Path) -> None:
    other = random_history(seed=12, steps=80)
    await fold(await other.log(), keeper_in(tmp_path, await other.log()))
    assert image(await fold(log, keeper_in(tmp_path, log), save=False)) == image(builder.state)


async def test_a_cold_run_whose_parts_are_damaged_makes_recovery_read_everything(
    builder: LogBuilder, log: MemoryLog, tmp_path: Path
) -> None:
    await fold(log, keeper_in(tmp_path, log, cold_after_ms=1))
    keeper = keeper_in(tmp_path, log, cold_after_ms=1)
    state = await keeper.load()
    cold = set(keeper.cold)
    assert cold
    for path in parts(tmp_path):
        flip(path)
    with pytest.raises(StorageFailed):
        keeper.thaw(state, cold.pop())
    assert image(await fold(log, keeper, save=False)) == image(builder.state)


async def test_while_the_store_does_not_answer_no_snapshot_is_given_up_and_nothing_is_read_anew(
    builder: LogBuilder, log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fold(log, keeper_in(tmp_path, log, cold_after_ms=1))
    kept = {path.name: path.read_bytes() for path in manifests(tmp_path)}
    keeper = keeper_in(tmp_path, log, cold_after_ms=1)
    state = await keeper.load()
    cold = sorted(keeper.cold)
    with monkeypatch.context() as outage:
        outage.setattr(LocalBlobs, "read", no_answer)
        with pytest.raises(StorageFailed, match="does not answer"):
            await keeper.warm(state, cold)
        with pytest.raises(StorageFailed, match="does not answer"):
            keeper.thaw(state, cold[0])
        for asking in (keeper, keeper_in(tmp_path, log)):
            with pytest.raises(StorageFailed, match="does not answer"):
                await asking.load()
    assert {path.name: path.read_bytes() for path in manifests(tmp_path)} == kept
    again = await keeper.load()
    assert again.position == state.position
    await keeper.warm(again, cold)
    assert image(await fold(log, keeper_in(tmp_path, log), save=False)) == image(builder.state)


async def test_a_part_that_the_disk_cannot_give_back_is_damaged(
    builder: LogBuilder, log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fold(log, keeper_in(tmp_path, log))

    class BadSector(io.BytesIO):
        def fileno(self) -> int:
            return 0

        def read(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    @contextmanager
    def opened_file(folder: int, name: str) -> Iterator[BinaryIO]:
        yield BadSector()

    monkeypatch.setattr(files, "opened_file", opened_file)
    assert image(await fold(log, keeper_in(tmp_path, log), save=False)) == image(builder.state)


def no_answer(blobs: LocalBlobs, name: str, limit_bytes: int) -> bytes | None:
    raise StorageFailed("the service does not answer")


@pytest.mark.parametrize("error", [StorageFailed("full"), MemoryError(), RuntimeError("can't start new thread")])
async def test_what_a_failed_snapshot_should_have_kept_the_next_one_keeps(
    error: Exception, builder: LogBuilder, log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = keeper_in(tmp_path, log, cold_after_ms=1)
    calls = 0

    def fail_often(slots: FileSlots, slot: int, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls % 3:
            raise error
        write(slots, slot, data)

    write = FileSlots.write
    monkeypatch.setattr(FileSlots, "write", fail_often)
    state = await fold(log, keeper)
    assert calls > 3
    for stream in keeper.cold:
        keeper.thaw(state, stream)
    assert image(state) == image(builder.state)

    again = keeper_in(tmp_path, log, cold_after_ms=1)
    resumed = await fold(log, again, save=False)
    for stream in again.cold:
        again.thaw(resumed, stream)
    assert image(resumed) == image(builder.state)
