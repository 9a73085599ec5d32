"""The whole system on random runs, while everything goes wrong: some hundred schedules, 10,000 in the full test.

`DAGBOK_SEEDS=7,8` runs these alone.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.simulation.schedules import run_shares
from tests.support.scale import scale

SCHEDULES = scale(300, 10_000)
GOES_WRONG = (
    *("refused", "lost", "late", "unheard", "doubled", "slow", "unreadable", "offset unknown"),
    *(
        "half a snapshot",
        "dispatch lost",
        "dispatch late",
        "dispatch doubled",
        "reply lost",
        "reply late",
        "reply doubled",
    ),
)


@pytest.mark.slow
def test_whatever_goes_wrong_nothing_is_decided_twice_lost_or_made_up_and_every_run_ends() -> None:
    named = os.environ.get("DAGBOK_SEEDS")
    seeds = [int(seed) for seed in named.split(",")] if named else range(SCHEDULES)
    faults, runs = Counter[str](), Counter[str]()
    for share in run_shares(seeds):
        assert not isinstance(share, str), share
        faults += share.faults
        runs += share.runs
    if not named:
        # The schedules have what they are there for.
        assert min(faults[kind] for kind in GOES_WRONG) > 5
        assert min(runs[status] for status in ("succeeded", "failed", "blocked", "cancelled")) > 20
