"""Several programs that do the same at the same moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dagbok import Dagbok, Limits
from tests.support.hosts import TIMEOUT_S, spec, yes

COUNT = 20


async def test_programs_that_start_the_same_run_with_other_limits_all_get_it_and_the_highest_ones_hold(
    tmp_path: Path,
) -> None:
    async with (
        asyncio.timeout(TIMEOUT_S),
        Dagbok.embedded(tmp_path / "data", yes, projector="none") as dagbok,
    ):
        task = spec("nobody", id="task")
        runs = await asyncio.gather(
            *[dagbok.start(task, key="same", limits=Limits(max_tokens=n)) for n in [5, *range(COUNT, 5, -1)]]
        )
        assert len(set(runs)) == 1
        found = dagbok.host.find(f"run:{runs[0]}")
        assert found is not None
        assert found.limits.max_tokens == COUNT
