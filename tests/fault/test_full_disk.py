"""A disk that is full: a shortage that passes is survived; one that stays ends the command with one line and its code,
and the same command goes on later. The disk of a real process is as large as the system lets its files grow."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dagbok import Outcome, TaskContext, worker
from dagbok.agents import patience
from dagbok.agents.workers import storing
from dagbok.cli import main
from dagbok.events.codes import Code
from dagbok.events.errors import StorageFailed
from dagbok.projections.artifacts.local import LocalBlobs
from tests.cli.programs import LIMIT_S, Program, eventually
from tests.support.hosts import hosted, spec

START = """
import sys
from dagbok.agents import patience
from dagbok.cli import main
patience.LONGEST_S = float(sys.argv[1])
sys.exit(main(sys.argv[2:]))
"""
COUNT = "6"


@contextmanager
def begun(program: Program, patience_s: float) -> Iterator[subprocess.Popen[str]]:
    """A run as a process of its own, of which two parts are verified and the others wait for the gate."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DAGBOK_")}
    arguments = program.command("--how", "gate", "--count", COUNT, "--quiet")
    with subprocess.Popen(
        [sys.executable, "-c", START, str(patience_s), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        eventually(lambda: len(program.calls()) == 4)
        yield process
        process.kill()


def fill_disk(process: subprocess.Popen[str], program: Program) -> None:
    """No file of the process can grow beyond what the log has now."""
    largest = max((program.data / name).stat().st_size for name in ("log.db", "log.db-wal"))
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))


def test_a_disk_that_stays_full_is_said_in_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    program = Program(tmp_path)
    with begun(program, 1.0) as process:
        fill_disk(process, program)
        program.open_gate()
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 6
    said = [line for line in err.splitlines() if line.startswith("DAGBOK-")]
    assert len(said) == 1
    assert said[0].startswith("DAGBOK-STORAGE-FAILED: ")
    assert "log.db" in said[0]
    assert "free disk space" in said[0]
    assert "Traceback" not in err
    assert main(program.command("--how", "gate", "--count", COUNT, "--quiet")) == 0
    calls = Counter(program.calls())
    assert (calls["part-00"], calls["part-01"]) == (1, 1), "what was verified is not done again"


def test_a_disk_that_is_full_for_a_while_is_survived(tmp_path: Path) -> None:
    program = Program(tmp_path)
    with begun(program, 60.0) as process:
        fill_disk(process, program)
        program.open_gate()
        assert process.stderr is not None
        while "storage failing" not in process.stderr.readline():
            assert process.poll() is None
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, "DAGBOK-STORAGE-FAILED" in err) == (0, False)


@worker("large", pure=True)
async def large(task: TaskContext) -> Outcome:
    """Too large for the log."""
    return Outcome.candidate(bytes(100_000))


async def test_an_artifact_that_cannot_be_stored_spends_no_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failures = LocalBlobs.write, list[str]()

    def full(self: LocalBlobs, name: str, data: bytes) -> None:
        if len(failures) < 10:
            failures.append(name)
            raise StorageFailed("no space left on device")
        write(self, name, data)

    monkeypatch.setattr(LocalBlobs, "write", full)
    monkeypatch.setattr(storing, "STORE_PAUSE_S", 0.01)
    async with hosted(tmp_path, large) as dagbok:
        result = await dagbok.run(spec("large", max_attempts=1))
        assert result.status == "succeeded"
    assert len(failures) == 10


async def test_an_artifact_that_can_never_be_stored_ends_the_process_and_not_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = LocalBlobs.write

    def full(self: LocalBlobs, name: str, data: bytes) -> None:
        raise StorageFailed("no space left on device")

    monkeypatch.setattr(LocalBlobs, "write", full)
    monkeypatch.setattr(storing, "STORE_PAUSE_S", 0.01)
    monkeypatch.setattr(patience, "LONGEST_S", 0.1)
    with pytest.raises(StorageFailed, match="no space left") as failed:
        async with hosted(tmp_path, large) as dagbok:
            await dagbok.run(spec("large", max_attempts=1), key="one")
    assert failed.value.code == Code.STORAGE_FAILED
    monkeypatch.setattr(LocalBlobs, "write", write)
    async with hosted(tmp_path, large) as dagbok:
        assert (await dagbok.run(spec("large", max_attempts=1), key="one")).status == "succeeded"
