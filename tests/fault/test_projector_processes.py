"""Projectors in processes of their own: some race for the same tables, some are killed inside a transaction."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.projector import Projector
from dagbok.projections.queries import Queries
from tests.support.histories import random_history
from tests.support.places import Place
from tests.support.projecting import dump, project
from tests.support.scale import scale

REPOSITORY = Path(__file__).parents[2]
STEPS = 400
BATCH = 7


class Process:
    """A running `tests.support.projector_process`, ready to begin."""

    def __init__(self, folder: Path, place: Place, *arguments: int) -> None:
        command = [sys.executable, "-m", "tests.support.projector_process", str(folder / "log.db")]
        self._process = subprocess.Popen(
            [*command, place.address(), *map(str, arguments)],
            cwd=REPOSITORY,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.answer() == "ready\n"

    def ask(self) -> None:
        """Try one batch."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """The next line that it says."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def finish(self) -> tuple[int, int]:
        """Let it take in the rest: the commits that it wrote, the batches that another process was faster with."""
        commits, lost = self._process.communicate()[0].split()
        return int(commits), int(lost)

    def dies(self) -> bool:
        """Let it go on; whether it killed itself."""
        said, _ = self._process.communicate()
        return said == "" and self._process.returncode == -signal.SIGKILL


async def _write_log(folder: Path, seed: int) -> None:
    log = SqliteLog.open(folder / "log.db")
    await random_history(seed, STEPS).append_to(log)
    await log.close()


async def _check(folder: Path, place: Place) -> int:
    """The tables equal an independent rebuild; how many commits there are."""
    log = SqliteLog.open(folder / "log.db")
    tables, whole = place.open(), place.open("whole")
    alone = Projector(log, whole)
    await alone.catch_up()
    assert dump(tables) == dump(whole) == await project(log, folder / "again.db", 11)
    tables.close()
    whole.close()
    await log.close()
    return alone.progress.commits


async def test_two_processes_write_every_event_once(tmp_path: Path, place: Place) -> None:
    await _write_log(tmp_path, seed=1)
    one, two = Process(tmp_path, place, 3), Process(tmp_path, place, 4)
    for _ in range(STEPS // 10):
        one.ask()
        two.ask()
        assert one.answer() == two.answer() == "tried\n"
    (commits, lost), (others, lost_too) = one.finish(), two.finish()
    assert commits + others == await _check(tmp_path, place)
    assert lost + lost_too > 0


@pytest.mark.parametrize("seed", range(scale(2, 20)))
async def test_a_process_that_is_killed_inside_a_batch_has_written_nothing_of_it(
    tmp_path: Path, place: Place, seed: int
) -> None:
    await _write_log(tmp_path, seed)
    batches = 0
    for fatal in (1, 3, 2):
        assert Process(tmp_path, place, BATCH, fatal).dies()
        batches += fatal - 1
        tables = place.open()
        assert Queries(tables).position().next_offset == batches * BATCH
        tables.close()
    Process(tmp_path, place, BATCH).finish()
    await _check(tmp_path, place)
