"""Workers that fork: what a child has of its parent must not keep the folder, nor speak for the parent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagbok.agents.hosting.locks import FileLock
from tests.cli.programs import LIMIT_S, begin

ROOT = Path(__file__).parents[2]

HOLDER = """
import os, sys
from pathlib import Path
from dagbok.agents.hosting.locks import FileLock
lock = FileLock(Path(sys.argv[1]), "holder")
assert lock.try_acquire()
if (child := os.fork()) == 0:
    assert not lock.held
    print("forked", flush=True)
    sys.stdin.readline()
    os._exit(0)
os.waitpid(child, 0)
"""

POOL = """
import multiprocessing
from dagbok import Outcome, TaskSpec, verifier, worker

@worker("pool")
async def pool(task):
    with multiprocessing.get_context("fork").Pool(2) as processes:  # ends them by SIGTERM
        return Outcome.candidate(sum(processes.map(abs, [-1, -2])))

@verifier("check", version="1")
def check(candidate, task):
    return candidate.json() == 3

def main() -> TaskSpec:
    return TaskSpec(goal="sum", worker="pool", verifier="check")
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a lock and has a child; the child ends with its input."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "forked\n"
        yield process
        process.kill()


def test_a_child_that_outlives_its_killed_parent_does_not_keep_the_lock(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    lock = FileLock(tmp_path / "lock", "next")
    assert not lock.try_acquire()
    holder.kill()
    holder.wait()
    assert lock.try_acquire()  # the child waits for its input still
    lock.release()


def test_the_parent_keeps_its_lock_when_a_child_ends(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    assert not FileLock(tmp_path / "lock", "next").try_acquire()
    assert holder.stdin is not None
    holder.stdin.close()
    assert holder.wait(LIMIT_S) == 0
    lock = FileLock(tmp_path / "lock", "next")
    assert lock.try_acquire()
    lock.release()


def test_a_pool_of_forked_processes_ends_and_its_signals_do_not_stop_the_run(tmp_path: Path) -> None:
    file = tmp_path / "pool.py"
    file.write_text(POOL)
    with begin("run", str(file), "--data", str(tmp_path / "data"), "--quiet") as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out.splitlines()[-1].startswith("succeeded")
