"""Snapshots of layers that were written once are read for ever: of the own format, and of versions 1 and 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, ConfigDict, Field

from dagbok.agents.layers import (
    Compositor,
    EmptyLayerConfig,
    LayerNode,
    LayerProvider,
    NoLayerDeps,
    ObjectLayer,
    PlainLayer,
    PromptLayer,
    ResumeAction,
    ResumePolicy,
    ResumeRules,
    Snapshot,
    read_snapshot,
)
from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryLayer, import_snapshot

FOLDER = Path(__file__).parent / "layers"


class Notes(BaseModel):
    model_config = ConfigDict(extra="forbid")

    texts: list[str] = Field(default_factory=list)


class NotesLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, Notes]):
    """Its state was `lines` once."""

    type_id = "golden.notes"
    state_version = 2
    state_migrators: ClassVar = {1: lambda state: {"texts": state.get("lines", [])}}


class Shelf(ObjectLayer[int]):
    type_id = "golden.shelf"


def compositor() -> Compositor:
    shelf = LayerProvider.from_factory(layer_type=Shelf, create=lambda _: Shelf(1))
    return Compositor(
        [
            *(LayerNode("rules", PromptLayer), LayerNode("shelf", shelf)),
            *(LayerNode("notes", NotesLayer), LayerNode("scratch", NotesLayer)),
            LayerNode("history", PydanticAIHistoryLayer),
        ]
    )


async def resumed(snapshot: Snapshot) -> tuple[dict[str, Any], int]:
    """The states at the end of a run, and how many messages there are."""
    rules = ResumeRules(default=ResumePolicy(closed=ResumeAction.START_NEW))
    async with compositor().enter(session_snapshot=snapshot, resume=rules) as run:
        run.suspend_on_exit()
        messages = len(run.get_layer("history", PydanticAIHistoryLayer).message_history)
    assert run.snapshot is not None
    return {each.name: each.state for each in run.snapshot.layers if each.name != "history"}, messages


@pytest.mark.parametrize(("name", "messages"), [("snapshot_1", 3), ("snapshot_2", 2)])
async def test_those_of_others_are_imported(name: str, messages: int) -> None:
    found = await resumed(import_snapshot((FOLDER / f"{name}.json").read_bytes()))
    texts = {"texts": ["first", "second"]}
    assert found == ({"rules": {}, "shelf": {}, "notes": texts, "scratch": {"texts": []}}, messages)


async def test_the_own_one_is_read_and_resumed() -> None:
    snapshot = read_snapshot((FOLDER / "snapshot_3.json").read_bytes())
    assert [each.cleanly for each in snapshot.layers] == [True, True, False, True, True]
    texts = {"texts": ["first", "second"]}
    assert await resumed(snapshot) == ({"rules": {}, "shelf": {}, "notes": texts, "scratch": {"texts": []}}, 1)


def test_the_own_one_is_written_as_it_was() -> None:
    text = (FOLDER / "snapshot_3.json").read_text()
    assert read_snapshot(text).to_json() + "\n" == text


def test_the_digest_of_a_graph_does_not_change() -> None:
    """Else every snapshot would be of another graph, as far as a dry run tells."""
    assert compositor().diff(read_snapshot((FOLDER / "snapshot_3.json").read_text())).same_graph
