"""A layer with which an agent reads what its task depends on and writes what it hands in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.families import PlainLayer
from dagbok.agents.layers.models import LayerConfig
from dagbok.agents.layers.tags import PlainTool
from dagbok.agents.workers.context import TaskContext
from dagbok.agents.workers.views import ArtifactView
from dagbok.events.specs import Artifact, Outcome

ARTIFACTS_LAYER_TYPE_ID: Final = "dagbok.artifacts"
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
TEXT: Final = "text/plain; charset=utf-8"


class ArtifactsConfig(LayerConfig):
    """How much an agent is shown at once, and how much it may write."""

    page_chars: int = Field(default=20_000, ge=1)
    max_draft_bytes: int = Field(default=1 << 20, ge=1)


class ArtifactsState(BaseModel):
    """What was written so far, by name: an attempt that fails loses none of it."""

    model_config = ConfigDict(extra="forbid")

    drafts: dict[str, str] = Field(default_factory=dict)


class ArtifactsLayer(PlainLayer[NoLayerDeps, ArtifactsConfig, ArtifactsState]):
    """Gives three tools. The loop of the worker calls `bind` first, and `outcome` at its end.

    What a tool cannot do it says in its answer: the model reads that, and tries something else.
    """

    type_id = ARTIFACTS_LAYER_TYPE_ID
    _task: TaskContext | None = None

    def bind(self, task: TaskContext) -> None:
        """Say whose artifacts these are."""
        self._task = task

    @property
    def tools(self) -> list[PlainTool]:
        return [self.list_artifacts, self.read_artifact, self.write_artifact]

    async def list_artifacts(self) -> list[dict[str, str | int]]:
        """List what may be read: task, name, media type and size in bytes."""
        return [
            {"task": view.task, "name": view.name, "media_type": view.ref.media_type, "size_bytes": view.ref.size_bytes}
            for view in self._views().values()
        ]

    async def read_artifact(self, task: str, name: str = "result", start: int = 0) -> str:
        """Read an artifact as text, a page at a time.

        Args:
            task: The task that made it.
            name: Its name.
            start: The first character to show.
        """
        view = self._views().get((task, name))
        if view is None:
            known = ", ".join(f"{name!r} of {task!r}" for task, name in self._views()) or "nothing"
            return f"There is no {name!r} of {task!r}. You may read: {known}."
        try:
            text = (await asyncio.to_thread(view.data)).decode()
        except UnicodeDecodeError:
            return f"{name!r} of {task!r} is {view.ref.media_type}, not text."
        start = max(start, 0)
        end = start + self.config.page_chars
        left = len(text) - end
        return text[start:end] + (f"\n[{left} characters more: start={end}]" if left > 0 else "")

    async def write_artifact(self, text: str, name: str = "result") -> str:
        """Write a text that is handed in as a result of this task. Writing again replaces it.

        Args:
            text: All of it.
            name: `result`, or the name of a further one.
        """
        if not NAME.fullmatch(name):
            return f"Not written: {name!r} is not 1 to 64 letters, digits, '.', '_' and '-'."
        size = len(text.encode())
        if size > self.config.max_draft_bytes:
            return f"Not written: {size} bytes are more than {self.config.max_draft_bytes}."
        self.runtime_state.drafts = {**self.runtime_state.drafts, name: text}
        return f"Written: {name!r}, {size} bytes."

    def outcome(self, *, outputs: JsonValue = None) -> Outcome:
        """What was written, as the candidate of the task. ValueError while nothing is written as `result`."""
        drafts: Mapping[str, str] = self.runtime_state.drafts
        if "result" not in drafts:
            raise ValueError("the agent wrote no 'result'")
        more = {name: _artifact(text) for name, text in drafts.items() if name != "result"}
        result = drafts["result"].encode()
        return Outcome.candidate(result, media_type=TEXT, artifacts=more, outputs=outputs)

    def _views(self) -> dict[tuple[str, str], ArtifactView]:
        if self._task is None:
            raise RuntimeError("The artifacts layer has no task: call bind(attempt.task) in the loop of the worker")
        found: dict[tuple[str, str], ArtifactView] = {}
        for task, artifacts in self._task.dependencies.items():
            found |= {(task, name): view for name, view in artifacts.items()}
        return found


def _artifact(text: str) -> Artifact:
    return Artifact(content=text.encode(), media_type=TEXT)
