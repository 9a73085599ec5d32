"""Which fields of a state are lists that are read and written piece by piece, and how their items are."""

from __future__ import annotations

from collections.abc import Mapping
from types import GenericAlias
from typing import Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from dagbok.agents.layers.growing import Growing


def growing_fields(model: type[BaseModel]) -> Mapping[str, str]:
    """Fields that are `Growing`, by the name that JSON has for them.

    Left out, and so read and written whole, is a field of which a piece may mean something else than in the whole: one
    that is required, or has constraints, validators or serializers of its own; all where the model has a serializer."""
    if model not in _fields:
        found = model.__pydantic_fields__.items()
        _fields[model] = {written_name(model, name): name for name, info in found if _is_piecewise(model, name, info)}
    return _fields[model]


def written_name(model: type[BaseModel], name: str) -> str:
    """What a field is called in JSON."""
    info = model.__pydantic_fields__[name]
    return info.serialization_alias or info.alias or name


def items_adapter(model: type[BaseModel], name: str) -> TypeAdapter[list[Any]]:
    """Reads and writes the items of a list of a state, as the model says bytes, times and floats are written."""
    key = (model, name)
    if key not in _adapters:
        annotation: Any = model.__pydantic_fields__[name].annotation
        listed: Any = GenericAlias(list, get_args(annotation) or (Any,))
        _adapters[key] = TypeAdapter(listed, config=model.model_config)
    return _adapters[key]


_fields: dict[type[BaseModel], Mapping[str, str]] = {}
_adapters: dict[tuple[type[BaseModel], str], TypeAdapter[list[Any]]] = {}


def _is_piecewise(model: type[BaseModel], name: str, info: FieldInfo) -> bool:
    if (get_origin(info.annotation) or info.annotation) is not Growing or info.is_required() or info.metadata:
        return False
    if (info.validation_alias or info.alias or name) != written_name(model, name):
        return False
    made = model.__pydantic_decorators__
    own = {of for each in made.field_validators.values() for of in each.info.fields}
    own |= {of for each in made.field_serializers.values() for of in each.info.fields}
    return not made.model_serializers and not own & {name, "*"}
