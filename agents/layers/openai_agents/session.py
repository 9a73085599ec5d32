"""The history of an agent of the SDK as the state of a layer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from agents import SessionSettings, TResponseInputItem  # noqa: TID251 - the SDK is called so
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter
from pydantic_core import to_jsonable_python

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.families import PlainLayer
from dagbok.agents.layers.growing import Growing
from dagbok.agents.layers.models import LayerConfig
from dagbok.agents.layers.openai_agents.items import closed, turn_start
from dagbok.events.canonical import canonical

OPENAI_AGENTS_SESSION_LAYER_TYPE_ID: Final = "openai_agents.session"


ITEMS: Final = TypeAdapter(list[dict[str, JsonValue]])


class OpenAIAgentsSessionConfig(LayerConfig):
    """`max_items`: how much of the history an agent is sent, at most; None is all. It begins with what a user said, so
    one long exchange may be more. The history itself is never shortened."""

    max_items: int | None = Field(default=None, ge=1)


class OpenAIAgentsSessionState(BaseModel):
    """The items of the conversation, oldest first, in the form of the Responses API."""

    model_config = ConfigDict(extra="forbid")

    items: Growing[dict[str, JsonValue]] = Field(default_factory=Growing)


class OpenAIAgentsSessionLayer(PlainLayer[NoLayerDeps, OpenAIAgentsSessionConfig, OpenAIAgentsSessionState]):
    """Keeps items from run to run; it gives no prompts and no tools."""

    type_id = OPENAI_AGENTS_SESSION_LAYER_TYPE_ID

    def session(self, put_down: Callable[[], Awaitable[None]] | None = None) -> LayerSession:
        """The history as a session of the SDK, for `Runner.run(…, session=…)`. `put_down` is awaited behind each change
        of it (`LayeredAttempt.put_down`), so that the log has what the SDK has kept."""
        return LayerSession(self, put_down)


class LayerSession:
    """The `Session` protocol of the SDK over the state of a layer. Calls that were never answered, because an attempt
    was stopped in them, are shown as interrupted: no provider takes a history with an open call."""

    session_id = "dagbok"
    session_settings: SessionSettings | None = None

    def __init__(self, layer: OpenAIAgentsSessionLayer, put_down: Callable[[], Awaitable[None]] | None) -> None:
        self._layer, self._put_down = layer, put_down

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest items in their order, of whole exchanges; `limit` goes before the config's `max_items`."""
        items = self._layer.runtime_state.items
        at_most = self._layer.config.max_items if limit is None else limit
        start = 0 if at_most is None else turn_start(items, at_most)
        return cast("list[TResponseInputItem]", closed(to_jsonable_python(items[start:])))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Put items behind those that are there, and put down. What no session takes is refused before, and is not in
        the history: PydanticSerializationError, ValidationError, or `InvalidInput`."""
        new = ITEMS.validate_python(to_jsonable_python(items))
        ITEMS.validate_json(canonical(new, "an item of the history"))
        self._layer.runtime_state.items.extend(new)
        await self._changed()

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item away; None when there is none."""
        items = self._layer.runtime_state.items
        if not items:
            return None
        last: Any = items.pop()
        await self._changed()
        return cast("TResponseInputItem", last)

    async def clear_session(self) -> None:
        """Forget all items."""
        self._layer.runtime_state.items.clear()
        await self._changed()

    async def _changed(self) -> None:
        if self._put_down is not None:
            await self._put_down()
