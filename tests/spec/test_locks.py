"""Locks of the operating system: one holder at a time, and free when the holder is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dagbok.agents.hosting.identity import new_process_id
from dagbok.agents.hosting.locks import FileLock, ProcessLocks
from dagbok.events.errors import InvalidInput, StorageFailed

HOLD = """
import sys
from pathlib import Path
from dagbok.agents.hosting.locks import ProcessLocks
locks = ProcessLocks(Path(sys.argv[1]), "child")
locks.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_one_holder_at_a_time_and_it_is_named(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock", "one"), FileLock(tmp_path / "lock", "two")
    assert first.try_acquire()
    assert first.try_acquire()
    assert not second.try_acquire()
    holder = second.holder()
    assert holder is not None
    assert (holder.pid, holder.process) == (os.getpid(), "one")
    first.release()
    first.release()
    assert second.try_acquire()
    assert second.held
    second.release()


def test_a_lock_file_that_says_nothing_names_nobody(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock", "one")
    assert lock.holder() is None
    (tmp_path / "lock").write_bytes(b"\x00 no holder")
    assert lock.holder() is None
    with lock:
        assert lock.try_acquire()
    assert not lock.held


def test_a_process_is_gone_when_its_lock_is_free_and_not_a_moment_before(tmp_path: Path) -> None:
    own = ProcessLocks(tmp_path, "own")
    own.acquire()
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert not own.is_gone("child")
        child.kill()
    assert own.is_gone("child")
    assert own.is_gone("child")
    assert own.is_gone("never was")
    assert not own.is_gone("own")
    own.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/dagbok", "a/b", "..", ".hidden", "", "a\n", "a\0b", "x" * 129, "{absolute}"]
)
def test_a_name_that_leads_out_of_the_folder_is_nobody_and_its_file_is_left_alone(name: str, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside.lock", tmp_path / "processes"
    folder.mkdir()
    outside.write_text("precious")
    name = name.replace("{absolute}", str(tmp_path / "outside"))
    locks = ProcessLocks(folder, "own")
    assert locks.is_gone(name)
    assert outside.read_text() == "precious"
    assert list(folder.iterdir()) == []
    with pytest.raises(InvalidInput):
        ProcessLocks(folder, name)


def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "processes"
    folder.mkdir()
    outside.write_text("precious")
    (folder / "gone.lock").symlink_to(outside)
    assert ProcessLocks(folder, "own").is_gone("gone")
    with pytest.raises(StorageFailed, match="a symbolic link"):
        FileLock(folder / "gone.lock", "own").try_acquire()
    assert outside.read_text() == "precious"


def test_no_two_processes_have_the_same_name() -> None:
    names = {new_process_id() for _ in range(1_000)}
    assert len(names) == 1_000
    assert all(len(name) < 100 and "/" not in name for name in names)
