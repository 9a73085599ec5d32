"""The example agent of layers, killed with SIGKILL between two turns: it goes on with its history."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.lightagent_env import ROOT

TIMEOUT_S = 60.0
DAGBOK = (sys.executable, "-m", "dagbok")


async def begin(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    """A `dagbok` process."""
    return await asyncio.create_subprocess_exec(
        *DAGBOK,
        *arguments,
        cwd=ROOT,
        env={**os.environ, "DAGBOK_DATA": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def told(folder: Path, *arguments: str) -> object:
    """What a command says, as JSON."""
    process = await begin(folder, *arguments, "--json")
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


async def seen(folder: Path, turns: int) -> None:
    """Wait until so many turns are in the log."""
    found = 0
    while found < turns:
        following = await begin(folder, "events", "last", "--follow", "--json")
        assert following.stdout is not None
        found = 0
        # It ends at once while there is no run.
        while found < turns and (line := await following.stdout.readline()):
            found += json.loads(line)["type"] == "SessionSuspended"
        with suppress(ProcessLookupError):
            following.kill()
        await following.communicate()


async def test_it_goes_on_with_its_history_when_it_is_killed_between_two_turns(tmp_path: Path) -> None:
    example = ("run", "examples/layered_agent.py", "--quiet", "--pace-s", "0.5")
    async with asyncio.timeout(TIMEOUT_S):
        first = await begin(tmp_path, *example)
        await seen(tmp_path, 2)
        first.kill()
        await first.communicate()
        second = await begin(tmp_path, *example)
        _, err = await second.communicate()
        assert second.returncode == 0, err.decode()
        found = await told(tmp_path, "session", "show", "last", "interview")
        assert isinstance(found, dict)
    turns = found["value"]["layers"]["history"]["state"]["turns"]
    assert [turn["question"] for turn in turns][:2] == ["What is a swarm?", "Who scouts?"]
    assert len(turns) == 6
    attempts = [turn["attempt"] for turn in turns]
    assert attempts == sorted(attempts)
    assert (attempts[0], attempts[-1]) == (1, 2), "some turns were asked before the kill, and none of them twice"
