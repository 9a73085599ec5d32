"""A layer of fixed texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.families import PlainLayer
from dagbok.agents.layers.models import LayerConfig

PLAIN_PROMPT_LAYER_TYPE_ID: Final = "plain.prompt"


class PromptLayerConfig(LayerConfig):
    """One text or several for each place."""

    prefix: str | list[str] = Field(default_factory=list)
    user: str | list[str] = Field(default_factory=list)
    suffix: str | list[str] = Field(default_factory=list)


class PromptLayer(PlainLayer[NoLayerDeps, PromptLayerConfig]):
    """Texts from its config: before and behind the system prompt, and of the user."""

    type_id = PLAIN_PROMPT_LAYER_TYPE_ID

    @property
    def prefix_prompts(self) -> Sequence[str]:
        return _texts(self.config.prefix)

    @property
    def suffix_prompts(self) -> Sequence[str]:
        return _texts(self.config.suffix)

    @property
    def user_prompts(self) -> Sequence[str]:
        return _texts(self.config.user)


def _texts(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
