"""A suspended agent outlives its program: the next version of it has other layers, goes on, and at last tidies up.

    python examples/layers_session_snapshot.py

Yesterday's agent keeps notes and holds a sandbox outside. Today's has notes in another form, a search in place of the
sandbox, and a rule more. What would become of each layer is asked first, and then done.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from pydantic import BaseModel, Field

from dagbok.agents.layers import (
    Compositor,
    EmptyLayerConfig,
    LayerNode,
    NoLayerDeps,
    PlainLayer,
    PromptLayer,
    ResumeAction,
    ResumePolicy,
    ResumeRules,
    Snapshot,
    import_snapshot,
    read_snapshot,
)

SANDBOXES: set[str] = set()
"""What is held outside of the program, such as containers that cost money until somebody deletes them."""


class Sandbox(BaseModel):
    id: str = ""


class SandboxLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, Sandbox]):
    """Holds a sandbox from its creation until it is deleted; a suspended one goes on to exist."""

    type_id = "example.sandbox"

    async def on_context_create(self) -> None:
        self.runtime_state.id = f"box-{len(SANDBOXES) + 1}"
        SANDBOXES.add(self.runtime_state.id)

    async def on_context_delete(self) -> None:
        SANDBOXES.remove(self.runtime_state.id)


class Lines(BaseModel):
    text: str = ""


class LinesLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, Lines]):
    """Notes, yesterday: one text."""

    type_id = "example.notes"


class Notes(BaseModel):
    notes: list[str] = Field(default_factory=list)


class NotesLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, Notes]):
    """Notes, today: the same type in its second version, and how to come from the first."""

    type_id = "example.notes"
    state_version = 2
    state_migrators: ClassVar = {1: lambda state: {"notes": state["text"].splitlines()}}


class SearchLayer(PlainLayer[NoLayerDeps]):
    """New today."""

    type_id = "example.search"


YESTERDAY = Compositor(
    [LayerNode("rules", PromptLayer), LayerNode("notes", LinesLayer), LayerNode("sandbox", SandboxLayer)]
)
TODAY = Compositor([LayerNode("rules", PromptLayer), LayerNode("search", SearchLayer), LayerNode("notes", NotesLayer)])
RULES = ResumeRules(
    layers={
        "search": ResumePolicy(added=ResumeAction.START_NEW),
        "sandbox": ResumePolicy(removed=ResumeAction.DROP),
    },
    retired=[LayerNode("sandbox", SandboxLayer)],
)


async def yesterday() -> str:
    """The first program. What it leaves is JSON, in a file or a table."""
    async with YESTERDAY.enter() as run:
        run.suspend_on_exit()
        run.get_layer("notes", LinesLayer).runtime_state.text = "buy ink\nwrite to Selma"
    assert run.snapshot is not None
    return run.snapshot.to_json()


async def today(text: str) -> tuple[str, Snapshot]:
    """The second program: looks first, then goes on. By now the sandbox is deleted."""
    diff = TODAY.diff(text, resume=RULES)
    async with TODAY.enter(session_snapshot=text, resume=RULES) as run:
        run.suspend_on_exit()
        run.get_layer("notes", NotesLayer).runtime_state.notes.append("post it")
    assert run.snapshot is not None
    return str(diff), run.snapshot


async def main() -> list[str]:
    """Both programs, an attempt to go on twice, a fork, a snapshot of Agenton, and the end of a session."""
    said, text = [], await yesterday()
    said.append(f"sandboxes: {sorted(SANDBOXES)}")
    refused = TODAY.diff(text).refused
    said.append(f"without rules refused: {', '.join(each.name for each in refused)}")
    diff, after = await today(text)
    said += [*diff.splitlines(), f"sandboxes: {sorted(SANDBOXES)}", f"notes: {after.layers[2].state['notes']}"]
    try:
        await today(text)
    except RuntimeError as error:
        said.append(f"a second time: {str(error).split(': ')[1]}")
    fork = read_snapshot(text).fork()
    said.append(f"a fork can be resumed: {not TODAY.diff(fork, resume=RULES).refused}")
    old = {"schema_version": 2, "layers": {"notes": {"text": "from Agenton"}, "rules": {}, "sandbox": {"id": "box-9"}}}
    SANDBOXES.add("box-9")
    done = await YESTERDAY.dispose(import_snapshot(old))
    said.append(f"disposed of: {[str(each.lifecycle) for each in done.layers]}, sandboxes: {sorted(SANDBOXES)}")
    return said


if __name__ == "__main__":
    print("\n".join(asyncio.run(main())))
