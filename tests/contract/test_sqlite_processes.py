"""Several processes on one SQLite log, and processes that are killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from dagbok.events.log.port import COMMANDS, EVENTS
from dagbok.events.log.sqlite import SqliteLog
from tests.contract.reading import read_all, records

REPOSITORY = Path(__file__).resolve().parents[2]


class Appender:
    """One running `tests.contract.sqlite_appender`, ready to begin."""

    def __init__(self, process: subprocess.Popen[str], stdin: IO[str], stdout: IO[str]) -> None:
        self.process, self._stdin, self._stdout = process, stdin, stdout
        assert self.line() == "ready"

    def begin(self) -> None:
        self._stdin.write("\n")
        self._stdin.flush()

    def line(self) -> str:
        return self._stdout.readline().rstrip("\n")

    def rest(self) -> list[str]:
        """The lines up to its end; the last one is left out when it was cut off."""
        whole, _, _ = self._stdout.read().rpartition("\n")
        self.process.wait(timeout=30)
        return whole.split("\n")


@contextmanager
def appender(path: Path, *arguments: str) -> Iterator[Appender]:
    command = [sys.executable, "-m", "tests.contract.sqlite_appender", str(path), *arguments]
    with subprocess.Popen(command, cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            yield Appender(process, process.stdin, process.stdout)
        finally:
            process.kill()


def acknowledged(lines: list[str]) -> dict[int, bytes]:
    """Value by offset."""
    return {int(offset): value.encode() for offset, _, value in (line.partition(" ") for line in lines)}


async def test_two_processes_that_expect_the_end_write_one_sequence_without_a_lost_record(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    count = 60
    with appender(path, "a", "expect", str(count)) as a, appender(path, "b", "expect", str(count)) as b:
        a.begin()
        b.begin()
        said = {"a": a.rest(), "b": b.rest()}

    conflicts = sum(int(lines[-1].removeprefix("conflicts ")) for lines in said.values())
    landed = acknowledged(said["a"][:-1]) | acknowledged(said["b"][:-1])
    log = SqliteLog.open(path)
    assert {record.offset: record.value for record in await read_all(log, EVENTS, 0)} == landed
    assert sorted(landed) == list(range(2 * count))
    assert conflicts > 0
    await log.close()


@pytest.mark.parametrize("acknowledgements", [1, 100, 700])
async def test_everything_acknowledged_is_there_after_kill_9(tmp_path: Path, acknowledgements: int) -> None:
    path = tmp_path / "log.db"
    with appender(path, "a", "forever") as process:
        process.begin()
        lines = [process.line() for _ in range(acknowledgements)]
        process.process.kill()
        lines += process.rest()
    landed = acknowledged([line for line in lines if line])

    log = SqliteLog.open(path)
    found = await read_all(log, EVENTS, 0)
    by_offset = {record.offset: record.value for record in found}
    assert landed.items() <= by_offset.items()
    assert all(by_offset[offset + 1] == value for offset, value in landed.items())
    assert len(found) % 2 == 0, "an append is there in half"
    assert await log.append(EVENTS, 0, records(b"next"), expect=len(found)) == len(found)
    await log.close()


async def test_an_instance_reads_on_while_the_process_that_appends_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = SqliteLog.open(path)
    with appender(path, "a", "forever") as process:
        process.begin()
        assert await log.wait(EVENTS, 0, 50, timeout_s=30)
        process.process.kill()
        lines = process.rest()

    await log.append(COMMANDS, 0, records(b"still writable"))
    found = {record.offset: record.value for record in await read_all(log, EVENTS, 0)}
    assert acknowledged(lines).items() <= found.items()
    await log.close()
