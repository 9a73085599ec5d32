"""A data folder in which something odd stands: said in one line at once, without waiting for it or following it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dagbok import Code, Dagbok, DagbokError
from dagbok.agents.hosting import folder as folder_module
from dagbok.agents.hosting.folder import NETWORK, DataFolder
from dagbok.agents.hosting.locks import FileLock, ProcessLocks
from dagbok.events.errors import StorageFailed
from dagbok.projections.snapshots.slots import FileSlots

TIMEOUT_S = 10.0


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_file(path: Path) -> None:
    path.write_text("a file")


def a_link(path: Path) -> None:
    target = path.with_name("target-of-the-link")
    target.write_text("precious")
    path.symlink_to(target)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


def a_socket(path: Path) -> None:
    with TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{short}/s")
        os.rename(f"{short}/s", path)


Make = Callable[[Path], None]
NO_FILES: list[Make] = [a_pipe, a_folder, a_link_to_nothing, a_socket]
NO_FOLDERS: list[Make] = [a_pipe, a_file, a_link, a_link_to_nothing, a_socket]


async def refusal(folder: Path) -> StorageFailed:
    """Why no host starts on this folder."""
    with pytest.raises(StorageFailed) as refused:
        async with asyncio.timeout(TIMEOUT_S), Dagbok.embedded(folder, projector="none"):
            pass
    assert "\n" not in str(refused.value)
    return refused.value


@pytest.mark.parametrize("make", [*NO_FILES, a_link])
async def test_the_lock_of_the_scheduler_is_a_file_and_no_link(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "scheduler.lock")
    error = await refusal(tmp_path)
    assert "scheduler.lock is a" in error.message
    assert "remove it" in error.advice


@pytest.mark.parametrize("name", ["log.db", "log.db-wal", "log.db-shm", "tables.db"])
@pytest.mark.parametrize("make", NO_FILES)
async def test_a_database_is_a_file(name: str, make: Make, tmp_path: Path) -> None:
    make(tmp_path / name)
    assert f"{name} is a" in (await refusal(tmp_path)).message


@pytest.mark.parametrize("name", ["processes", "artifacts", "snapshots"])
@pytest.mark.parametrize("make", NO_FOLDERS)
async def test_a_folder_is_a_folder(name: str, make: Make, tmp_path: Path) -> None:
    make(tmp_path / name)
    assert f"{name} is a" in (await refusal(tmp_path)).message


async def test_the_data_folder_is_a_folder_and_so_is_what_it_lies_in(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    for folder in (tmp_path / "file", tmp_path / "file" / "data"):
        error = await refusal(folder)
        assert error.message == f"{tmp_path / 'file'} is a file, not a folder"


@pytest.mark.parametrize("make", [*NO_FILES, a_link])
def test_what_stands_where_a_process_would_have_its_lock_is_nobody(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "odd.lock")
    locks = ProcessLocks(tmp_path, "own")
    assert locks.is_gone("odd")
    assert (tmp_path / "odd.lock").is_symlink() or (tmp_path / "odd.lock").exists(), "left alone"
    lock = FileLock(tmp_path / "odd.lock", "own")
    assert lock.holder() is None
    with pytest.raises(StorageFailed):
        lock.try_acquire()


@pytest.mark.parametrize("make", [*NO_FILES, a_link])
async def test_what_stands_in_the_slot_of_a_snapshot_is_passed_over(make: Make, tmp_path: Path) -> None:
    slots = FileSlots(tmp_path, 0)
    make(tmp_path / "0-0.manifest")
    make(tmp_path / "0-1.new")
    assert slots.read() == []
    async with asyncio.timeout(TIMEOUT_S):
        try:
            await asyncio.to_thread(slots.write, 1, b"a manifest")
        except StorageFailed:
            assert make is a_folder
        else:
            assert slots.read() == [b"a manifest"]


@pytest.mark.parametrize("kind", ["9p", "virtiofs", "nfs4", "fuse.sshfs"])
async def test_what_a_machine_shares_with_another_is_no_local_disk(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "filesystem_of", lambda path: kind)
    assert kind in NETWORK
    assert (await refusal(tmp_path)).code == Code.NETWORK_FILESYSTEM


@pytest.fixture
def locked_out() -> Iterator[Path]:
    """A folder of another user, in which this one may write nothing (whoever runs the tests)."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "data").mkdir()
        owner = os.geteuid()
        if owner == 0:
            os.seteuid(65534)
        else:
            (folder / "data").chmod(0o555)
        try:
            yield folder / "data"
        finally:
            os.seteuid(owner)
            (folder / "data").chmod(0o755)


async def test_a_folder_that_cannot_be_written_is_refused_with_advice(locked_out: Path) -> None:
    for folder in (locked_out, locked_out / "below"):
        error = await refusal(folder)
        assert str(locked_out) in error.message
        assert "writable" in error.advice


async def test_a_database_that_cannot_be_written_is_refused_with_advice(tmp_path: Path) -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o777)
        async with Dagbok.embedded(folder, projector="none"):
            pass
        for path in (*folder.iterdir(), *folder.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o444)
        owner = os.geteuid()
        if owner == 0:
            os.seteuid(65534)
        try:
            error = await refusal(folder)
        finally:
            os.seteuid(owner)
        assert "writable" in error.advice


def test_a_folder_may_be_reached_through_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").symlink_to("elsewhere")
    (tmp_path / "big").mkdir()
    (tmp_path / "elsewhere" / "artifacts").symlink_to(tmp_path / "big")
    DataFolder(tmp_path / "data").prepare()
    assert (tmp_path / "elsewhere" / "processes").is_dir()


def test_who_holds_a_lock_can_be_unknown(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock", "one")
    for content in (b"", b"[" * 4_000, b"\xff" * 10_000):
        (tmp_path / "lock").write_bytes(content)
        assert lock.holder() is None


def test_every_refusal_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "log.db").mkdir()
    with pytest.raises(DagbokError) as refused:
        DataFolder(tmp_path).prepare()
    assert str(refused.value).endswith("remove it, or use another data folder (--data)")
