"""An answer in a shape: from the config of a layer, as data, or from the type that its factory gave."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from dagbok.agents.layers import LayerProvider
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_OUTPUT_LAYER_TYPE_ID, PydanticAIOutputLayer

SCHEMA = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


class Colour(BaseModel):
    colour: str


def test_its_type_id_is_a_constant() -> None:
    assert PydanticAIOutputLayer.type_id == PYDANTIC_AI_OUTPUT_LAYER_TYPE_ID == "pydantic_ai.output"


async def test_an_agent_answers_in_the_schema_of_the_config() -> None:
    provider = LayerProvider.from_layer_type(PydanticAIOutputLayer)
    layer = provider.create_layer({"json_schema": SCHEMA, "name": "paint", "description": "What to paint with."})
    told: list[tuple[str, str | None]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        (tool,) = info.output_tools
        told.append((tool.name, tool.description))
        assert tool.parameters_json_schema["required"] == ["colour"]
        return ModelResponse(parts=[ToolCallPart(tool.name, {"colour": "red"})])

    result = await Agent(FunctionModel(model), output_type=layer.output_type).run("paint")
    assert result.output == {"colour": "red"}
    assert "What to paint with." in str(told)


async def test_an_agent_answers_in_the_type_of_the_factory() -> None:
    layer = PydanticAIOutputLayer(Colour)
    layer.config = LayerProvider.from_layer_type(PydanticAIOutputLayer).create_layer().config
    result = await Agent(TestModel(), output_type=layer.output_type).run("paint")
    assert result.output == Colour(colour="a")


def test_without_either_it_answers_with_text() -> None:
    assert LayerProvider.from_layer_type(PydanticAIOutputLayer).create_layer().output_type is str


def test_a_schema_that_is_of_no_object_is_refused() -> None:
    layer = LayerProvider.from_layer_type(PydanticAIOutputLayer).create_layer({"json_schema": {"type": "string"}})
    with pytest.raises(UserError, match="object"):
        _ = layer.output_type
    with pytest.raises(ValidationError, match="name"):
        LayerProvider.from_layer_type(PydanticAIOutputLayer).create_layer({"name": "a b"})
