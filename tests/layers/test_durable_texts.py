"""A session has texts in Unicode's normal form C: keys of a state that are written otherwise do not stop its turns."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from dagbok import Outcome
from dagbok.agents.layers import Compositor, Growing, LayerConfig, LayerNode, NoLayerDeps, PlainLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.workers.sessions.operations import Cut, Drop, add, decode_part, encode_part, put
from dagbok.events.errors import InvalidInput
from dagbok.testing import context

FORM_C = "caf\u00e9.txt"
FORM_D = "cafe\u0301.txt"
"""The same name as a Mac's file system gives it."""


class Files(BaseModel):
    lines: dict[str, list[str]] = Field(default_factory=dict)
    sizes: dict[str, int] = Field(default_factory=dict)
    log: Growing[str] = Field(default_factory=Growing)


class FilesLayer(PlainLayer[NoLayerDeps, LayerConfig, Files]):
    config_type = LayerConfig


def worker(loop: Any, name: str = "files") -> LayeredWorker:
    return LayeredWorker(Compositor([LayerNode(name, FilesLayer)]), loop)


def files(attempt: LayeredAttempt) -> Files:
    return attempt.run.get_layer("files", FilesLayer).runtime_state


async def test_turns_go_on_behind_a_key_that_is_not_in_normal_form_c() -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        state = files(attempt)
        state.lines[FORM_D], state.sizes[FORM_D] = ["one"], 1
        await attempt.put_down()
        state.lines[FORM_D].append("two")
        state.sizes[FORM_D] = 2
        state.log.append("read it")
        await attempt.put_down()
        del state.sizes[FORM_D]
        state.lines[FORM_D].pop(0)
        return Outcome.candidate(0)

    async def again(attempt: LayeredAttempt) -> Outcome:
        state = files(attempt)
        state.lines = {FORM_D: ["three"]}
        return Outcome.candidate(0)

    task = context()
    await worker(loop).work(task)
    assert task.session.load()["layers"]["files"]["state"] == {
        "lines": {FORM_C: ["two"]},
        "sizes": {},
        "log": ["read it"],
    }
    later = context(session=task.session.load())
    await worker(again).work(later)
    assert later.session.load()["layers"]["files"]["state"]["lines"] == {FORM_C: ["three"]}


@pytest.mark.parametrize("before", [{}, {FORM_C: 1}, {FORM_D: 1}])
async def test_two_keys_that_would_be_one_are_refused_and_what_was_put_down_stays(before: dict[str, int]) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        state = files(attempt)
        state.sizes = dict(before)
        await attempt.put_down()
        state.sizes = {FORM_C: 1, FORM_D: 2}
        with pytest.raises(InvalidInput, match="two keys"):
            await attempt.put_down()
        del state.sizes[FORM_D]
        state.log.append("told apart")
        await attempt.put_down()
        return Outcome.candidate(0)

    task = context()
    await worker(loop).work(task)
    assert task.session.load()["layers"]["files"]["state"] == {
        "lines": {},
        "sizes": {FORM_C: 1},
        "log": ["told apart"],
    }


async def test_the_first_turn_refuses_them_too() -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        files(attempt).sizes = {FORM_C: 1, FORM_D: 2}
        with pytest.raises(InvalidInput, match="two keys"):
            await attempt.put_down()
        files(attempt).sizes.clear()
        return Outcome.candidate(0)

    await worker(loop).work(context())


def test_the_name_of_a_layer_is_in_normal_form_c() -> None:
    with pytest.raises(ValueError, match="normal form C"):
        Compositor([LayerNode(FORM_D, FilesLayer)])


def test_a_name_or_type_that_no_snapshot_can_have_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="no text that can be written"):
        Compositor([LayerNode("half \udcff", FilesLayer)])
    with pytest.raises(TypeError, match="type_id must be a text that can be written"):
        type("Half", (FilesLayer,), {"type_id": "half \udcff"})


def test_a_part_that_an_earlier_version_wrote_leads_where_it_was_meant_to() -> None:
    """Such a part has names of its paths as they came."""
    changes = [put((FORM_D,), 1), add((FORM_D,), [1]), Cut((FORM_D,), 1), Drop(("a", FORM_D))]
    assert [each.path[-1] for each in changes] == [FORM_C] * 4
    written = b'{"v":1,"ops":[["put",["%b"],2]]}' % FORM_D.encode()
    assert decode_part(written) == (put((FORM_C,), 2),)
    assert encode_part(decode_part(written)) == encode_part([put((FORM_C,), 2)])
