"""Functions as tools that bring the JSON Schema of their arguments: nothing has to be read from their annotations."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pydantic import JsonValue

from dagbok.agents.layers.tags import PlainTool

_SCHEMA: Final = "_parameters_schema"
_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def described_tool(
    call: Callable[[dict[str, Any]], Awaitable[Any]],
    *,
    name: str,
    description: str,
    parameters: Mapping[str, JsonValue],
) -> PlainTool:
    """A tool of the plain family that hands its arguments on as an object.

    `parameters` is the JSON Schema of that object; adapters take it as it is (`parameters_of`). The function also has
    name, docstring, keyword-only parameters and annotations for who reads those; where a name is no name of Python, it
    takes any keyword. An optional argument that is None is left out.
    """
    required = parameters.get("required") or []

    async def tool(**arguments: Any) -> Any:
        given = {key: value for key, value in arguments.items() if value is not None or key in required}  # type: ignore[operator]
        return await call(given)

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = description
    signature = _signature(parameters)
    if signature is not None:
        tool.__signature__ = signature  # type: ignore[attr-defined]
        tool.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    setattr(tool, _SCHEMA, dict(parameters))
    return tool


def parameters_of(tool: PlainTool) -> dict[str, Any] | None:
    """The JSON Schema that a tool brings for its arguments; None for a function that is described by its signature."""
    found: dict[str, Any] | None = getattr(tool, _SCHEMA, None)
    return None if found is None else dict(found)


def _signature(parameters: Mapping[str, JsonValue]) -> inspect.Signature | None:
    properties, required = parameters.get("properties") or {}, parameters.get("required") or []
    if not isinstance(properties, dict) or not isinstance(required, list):
        return None
    try:
        return inspect.Signature([_parameter(name, each, name in required) for name, each in properties.items()])
    except ValueError:  # a name that is none of Python
        return None


def _parameter(name: str, schema: JsonValue, required: bool) -> inspect.Parameter:
    kind = schema.get("type") if isinstance(schema, dict) else None
    annotation = _TYPES.get(kind, Any) if isinstance(kind, str) else Any
    if required:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
    optional = annotation if annotation is Any else annotation | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=optional)
