"""The projector process is watched: started again when it dies or could not be started, and of what it says only the
end is kept."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from dagbok.agents.hosting import children
from dagbok.agents.hosting.children import TAIL_BYTES, ProjectorChild, tail
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.projector_child import HALTED

TIMEOUT_S = 20.0


async def test_of_a_stream_the_end_is_kept_and_nothing_more() -> None:
    stream = asyncio.StreamReader()
    reading = asyncio.create_task(tail(stream))
    for number in range(1_000):
        stream.feed_data(b"%06d" % number * 500)
        await asyncio.sleep(0)
    stream.feed_eof()
    said = await reading
    assert said == (b"000999" * 500)[-TAIL_BYTES:]
    assert not stream._buffer  # type: ignore[attr-defined]


async def test_a_process_that_cannot_be_started_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "RESTART_PAUSE_S", 0.001)
    spawn, tries = asyncio.create_subprocess_exec, list[int]()

    async def failing(*command: str, **more: object) -> asyncio.subprocess.Process:
        tries.append(1)
        if len(tries) < 3:
            raise BlockingIOError("no more processes")
        halts = f"import sys; print('x' * 5_000_000, file=sys.stderr); sys.exit({HALTED})"
        return await spawn(sys.executable, "-c", halts, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", failing)
    await asyncio.wait_for(ProjectorChild(DataFolder(tmp_path)).run(), TIMEOUT_S)
    assert len(tries) == 3
