"""Tools that bring the JSON Schema of their arguments."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

from pydantic_ai import Tool

from dagbok.agents.layers import PlainToolType, described_tool, parameters_of
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "how": {"anyOf": [{"type": "string"}]}},
    "required": ["city"],
}


async def shown(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


async def test_it_hands_its_arguments_on_without_optional_ones_that_are_none() -> None:
    tool = described_tool(shown, name="weather", description="How it will be.", parameters=SCHEMA)
    assert await tool(city="Bergen", days=None, how="short") == {"city": "Bergen", "how": "short"}
    assert await tool(city=None) == {"city": None}


def test_who_reads_functions_finds_a_function() -> None:
    tool = described_tool(shown, name="weather", description="How it will be.", parameters=SCHEMA)
    assert (tool.__name__, tool.__doc__) == ("weather", "How it will be.")
    assert str(inspect.signature(tool)) == "(*, city: str, days: int | None = None, how: Any = None)"
    assert get_type_hints(tool) == {"city": str, "days": int | None, "how": Any}
    assert inspect.iscoroutinefunction(tool)
    assert Tool(tool).function_schema.json_schema["required"] == ["city"]


def test_names_that_python_does_not_take_are_taken_all_the_same() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"from-city": {"type": "string"}}}
    tool = described_tool(shown, name="weather", description="", parameters=schema)
    assert [each.kind for each in inspect.signature(tool).parameters.values()] == [inspect.Parameter.VAR_KEYWORD]


def test_an_adapter_takes_the_schema_as_it_is() -> None:
    tool = described_tool(shown, name="weather", description="How it will be.", parameters=SCHEMA)
    to_tools = PYDANTIC_AI_TRANSFORMERS["tool_transformer"]
    assert to_tools is not None
    made = to_tools([PlainToolType(tool), PlainToolType(shown)])
    assert made[0].function_schema.json_schema == parameters_of(tool) == SCHEMA
    assert parameters_of(shown) is None
    assert [each.name for each in made] == ["weather", "shown"]
