"""What an agent must answer with."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field, JsonValue
from pydantic_ai import StructuredDict
from pydantic_ai.output import OutputSpec

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.families import PydanticAILayer
from dagbok.agents.layers.models import LayerConfig

PYDANTIC_AI_OUTPUT_LAYER_TYPE_ID: Final = "pydantic_ai.output"


class PydanticAIOutputConfig(LayerConfig):
    """The shape of an answer as JSON Schema of an object, with a name and a description for the model."""

    json_schema: dict[str, JsonValue] | None = None
    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str | None = None


class PydanticAIOutputLayer(PydanticAILayer[NoLayerDeps, Any, PydanticAIOutputConfig]):
    """`output_type` for the agent: of the config's schema, else the type that the factory gave, else text."""

    type_id = PYDANTIC_AI_OUTPUT_LAYER_TYPE_ID

    def __init__(self, output_type: OutputSpec[Any] = str) -> None:
        self._given = output_type

    @property
    def output_type(self) -> OutputSpec[Any]:
        """What to give `Agent` as `output_type`. An answer in another shape goes back to the model, not to you. Raises
        Pydantic AI's UserError for a schema that is not of an object."""
        config = self.config
        if config.json_schema is None:
            return self._given
        return StructuredDict(config.json_schema, name=config.name, description=config.description)
