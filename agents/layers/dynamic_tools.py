"""Tools that take an object of the run as their first argument, which a model never sees."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from dagbok.agents.layers.accepting import accepts, first_annotation
from dagbok.agents.layers.deps import LayerDeps
from dagbok.agents.layers.families import PlainLayer
from dagbok.agents.layers.object_layer import ObjectLayer
from dagbok.agents.layers.tags import PlainTool

T = TypeVar("T")
_MARK = "_object_type_of_tool"


def with_object(object_type: type[T]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function: a `DynamicToolsLayer` gives it the object of its `object_layer` as first argument.

    Raises:
        ValueError: The function has no parameter that could take it.
        TypeError: The annotation of its first parameter does not accept `object_type`.
    """

    def marked(function: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(function, "__name__", repr(function))
        first = _first_parameter(function)
        if first is None:
            raise ValueError(f"{name} needs a first parameter for the object")
        if not accepts(first_annotation(function, first), object_type):
            raise TypeError(f"{name}: parameter '{first.name}' does not accept {object_type.__name__}")
        setattr(function, _MARK, object_type)
        return function

    return marked


class DynamicToolsDeps(LayerDeps, Generic[T]):
    """The object for the marked tools."""

    object_layer: ObjectLayer[T]


class DynamicToolsLayer(PlainLayer[DynamicToolsDeps[T]], Generic[T]):
    """Gives functions as they are, and those marked by `with_object` with their object bound.

    Reading `tools` raises TypeError where the object is not of the class that a function was marked with.
    """

    def __init__(self, tool_entries: Sequence[PlainTool] = ()) -> None:
        self.tool_entries = tuple(tool_entries)

    @property
    def tools(self) -> Sequence[PlainTool]:
        value = self.deps.object_layer.value
        return [_bound(entry, value) for entry in self.tool_entries]


def _bound(entry: PlainTool, value: object) -> PlainTool:
    wanted: type | None = getattr(entry, _MARK, None)
    if wanted is None:
        return entry
    if not isinstance(value, wanted):
        name = getattr(entry, "__name__", repr(entry))
        raise TypeError(f"{name} needs an object of {wanted.__name__}, got {type(value).__name__}")
    return _without_first(entry, value)


def _without_first(entry: PlainTool, value: object) -> PlainTool:
    if inspect.iscoroutinefunction(entry):

        @functools.wraps(entry)
        async def bound_later(*args: Any, **kwargs: Any) -> Any:
            return await entry(value, *args, **kwargs)

        bound: PlainTool = bound_later
    else:

        @functools.wraps(entry)
        def bound_now(*args: Any, **kwargs: Any) -> Any:
            return entry(value, *args, **kwargs)

        bound = bound_now
    signature = inspect.signature(entry)
    first, *rest = signature.parameters.values()
    _describe(bound, first.name, signature.replace(parameters=rest))
    return bound


def _describe(bound: Any, gone: str, signature: inspect.Signature) -> None:
    """Libraries read signature, annotations and `__wrapped__`: none may show the argument that is bound."""
    del bound.__wrapped__
    bound.__dict__.pop(_MARK, None)
    bound.__signature__ = signature
    bound.__annotations__ = {name: hint for name, hint in bound.__annotations__.items() if name != gone}


def _first_parameter(function: Callable[..., Any]) -> inspect.Parameter | None:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first if first is not None and first.kind in kinds else None
