"""The projector process is watched: started again when it dies or could not be started, and of what it says only the
end is kept."""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dagbok.agents.hosting import children
from dagbok.agents.hosting.children import TAIL_BYTES, ProjectorChild, tail
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.projector_child import HALTED
from dagbok.agents.hosting.repeats import FIRST_S, LONGEST_S, OVER_S, Repeats

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


async def test_what_kills_it_again_and_again_is_logged_once_and_a_change_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "RESTART_PAUSE_S", 0.001)
    monkeypatch.setattr(children, "LONGEST_PAUSE_S", 0.001)
    spawn = asyncio.create_subprocess_exec
    deaths = iter([("disk full", 1)] * 4 + [("tables damaged", 1)] * 3 + [("too new", HALTED)])

    async def dying(*command: str, **more: object) -> asyncio.subprocess.Process:
        said, status = next(deaths)
        dies = f"import sys; print({said!r}, file=sys.stderr); sys.exit({status})"
        return await spawn(sys.executable, "-S", "-c", dies, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", dying)
    with capture_logs() as logged:
        async with asyncio.timeout(TIMEOUT_S):
            await ProjectorChild(DataFolder(tmp_path)).run()
    told = [(line["event"], line["error"], line["times"]) for line in logged]
    assert told == [("projector.died", said, 1) for said in ("disk full", "tables damaged", "too new")]


def test_the_same_is_said_again_at_growing_intervals_with_how_often_it_came() -> None:
    repeats = Repeats()
    said = [(now_s, times) for now_s in range(0, 20_000, 10) if (times := repeats.count("full", now_s))]
    moments = [now_s for now_s, _ in said]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert gaps[:6] == [FIRST_S * 2**n for n in range(6)]
    assert set(gaps[6:]) == {LONGEST_S}
    assert [times for _, times in said[:3]] == [1, 6, 12]


def test_what_comes_after_a_long_quiet_is_news() -> None:
    repeats = Repeats()
    assert [repeats.count("full", now_s) for now_s in (0.0, 1.0, 2.0)] == [1, 0, 0]
    assert repeats.count("full", 2.0 + OVER_S + 1.0) == 1
    assert repeats.in_a_row == 1
