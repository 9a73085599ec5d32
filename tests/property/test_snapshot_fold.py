"""A snapshot and the log behind it give the state that the whole log gives, to the byte."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.projections.snapshots import index
from tests.support.histories import random_history
from tests.support.scale import scale
from tests.support.snapshotting import fold, image, keeper_in


@settings(max_examples=scale(15, 200), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(5, 80), due_bytes=st.sampled_from((1, 2_000, 20_000)))
async def test_snapshot_and_tail_equal_the_whole_log(seed: int, steps: int, due_bytes: int) -> None:
    builder = random_history(seed, steps)
    log = await builder.log()
    middle = Random(seed).randrange(len(builder.records) + 1)
    with TemporaryDirectory() as folder:
        await fold(log, keeper_in(Path(folder), log, due_bytes=due_bytes), until=middle)
        resumed = await fold(log, keeper_in(Path(folder), log), save=False)
    assert image(resumed) == image(builder.state)


@settings(max_examples=scale(10, 100), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(20, 80))
async def test_runs_that_went_out_of_memory_come_back_as_they_were(seed: int, steps: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "CHUNK_RUNS", 2)
        await _come_back(seed, steps)


async def _come_back(seed: int, steps: int) -> None:
    builder = random_history(seed, steps)
    log = await builder.log()
    with TemporaryDirectory() as folder:
        keeper = keeper_in(Path(folder), log, cold_after_ms=100)
        state = await fold(log, keeper)
        for stream in builder.state.runs:
            keeper.thaw(state, stream)
        assert image(state) == image(builder.state)
        again = keeper_in(Path(folder), log, cold_after_ms=100)
        thawed = await fold(log, again, save=False)
        for stream in builder.state.runs:
            again.thaw(thawed, stream)
        assert image(thawed) == image(builder.state)
