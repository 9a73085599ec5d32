"""A process killed with SIGKILL at each named place: the next one finishes the run, and nothing is lost, repeated or
faked."""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from dagbok.agents import faultpoints
from tests.support.audit import check_folder, verified_tasks
from tests.support.scale import scale
from tests.support.victims import calls, run_victim, start_victim

EXPECTED = "succeeded " + str(sorted(40_000 if n % 5 == 0 else 10 + n for n in range(30)))
OFTEN, SELDOM = (1, 4, 6), (1,)
SEAMS = [
    (place, occurrence)
    for place in faultpoints.ALL
    for occurrence in (SELDOM if place == faultpoints.CHUNKS_WRITTEN else OFTEN)[: scale(2, 3)]
]


@pytest.mark.parametrize(("place", "occurrence"), SEAMS)
async def test_the_run_goes_on_wherever_its_process_was_killed(place: str, occurrence: int, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()

    status, _ = await run_victim(folder, f"{place}:{occurrence}")
    assert status == -signal.SIGKILL
    done, called = await verified_tasks(folder), calls(folder)

    status, output = await run_victim(folder)
    assert (status, output.splitlines()[-1]) == (0, EXPECTED)
    again = calls(folder) - called
    assert not [task for task in done if f"work {task}" in again], "verified work was done again"
    await check_folder(folder, tmp_path)


async def test_the_run_goes_on_whenever_its_process_is_killed(tmp_path: Path) -> None:
    random_times = random.Random(4711)
    for number in range(scale(3, 50)):
        folder = tmp_path / f"data-{number}"
        folder.mkdir()
        await _killed_after(folder, kills=3, longest_s=1.0, random_times=random_times)

        status, output = await run_victim(folder)
        assert (status, output.splitlines()[-1]) == (0, EXPECTED)
        await check_folder(folder, tmp_path / f"data-{number}")


async def _killed_after(folder: Path, *, kills: int, longest_s: float, random_times: random.Random) -> None:

    for _ in range(kills):
        process = await start_victim(folder)
        try:
            await asyncio.wait_for(process.communicate(), random_times.uniform(0.2, longest_s))
        except TimeoutError:
            with suppress(ProcessLookupError):  # it has ended in this very moment
                process.kill()
            await process.wait()
