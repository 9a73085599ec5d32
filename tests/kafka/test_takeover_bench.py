"""`bench/takeover.py`: the other scheduler goes on after a SIGKILL, and the parts of the time add up."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec
import pytest

from tests.servers.kafka_session import session_kafka

ROOT = Path(__file__).parents[2]
TASKS = 50
SESSION_S = 1.5
GIVE_UP_S = 120.0


async def test_the_time_until_the_heir_commits_is_told_with_its_parts(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ROOT / "bench" / "takeover.py"), "--json",
        "--tasks", str(TASKS), "--repeats", "1", "--session", str(SESSION_S), "--folder", str(tmp_path),
        env={**os.environ, "KAFKA_BOOTSTRAP_SERVERS": session_kafka().bootstrap},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(GIVE_UP_S):
        out, told = (text.decode() for text in await process.communicate())
    assert process.returncode == 0, out + told
    figures = msgspec.json.decode(out.splitlines()[-1], type=dict[str, object])
    (run,) = msgspec.convert(figures["runs"], list[dict[str, float]])
    assert run["events"] == 1 + TASKS, "a start, and a claim of each task"
    assert run["takeover_s"] > SESSION_S / 2, "nobody takes over from who may still be there"
    assert sum(run[part] for part in ("assigned_s", "fold_s", "first_commit_s")) == pytest.approx(
        run["takeover_s"], abs=0.01
    )
    assert run["takeover_s"] - run["behind_session_s"] == pytest.approx(SESSION_S, abs=0.01)
    assert not list(tmp_path.iterdir()), "nothing is left behind"
