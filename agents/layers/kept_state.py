"""The state of a layer as it was valid last: lists that grow are kept as they are, and written when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import GenericAlias, MappingProxyType
from typing import Any, Final, NamedTuple, get_args, get_origin

import msgspec
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json

from dagbok.agents.layers.growing import Growing
from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.models import EmptyRuntimeState

StateJson = dict[str, JsonValue]
UnreadLists = Mapping[str, Sequence[msgspec.Raw]]
"""Growing lists of one state by field, as the JSON of their items."""
NO_LISTS: Final[Mapping[str, Any]] = MappingProxyType({})


class KeptState(NamedTuple):
    """All of a state: `rest` is what does not grow."""

    rest: StateJson
    lists: Mapping[str, tuple[Any, ...]] = NO_LISTS
    model: type[BaseModel] = EmptyRuntimeState

    def json(self) -> StateJson:
        """The state as it is written. Costs what there is."""
        if not self.lists:
            return dict(self.rest)
        return {**self.rest, **{name: _written(self.model, name, items) for name, items in self.lists.items()}}


NOTHING_KEPT: Final = KeptState({})


def valid_state(layer: AnyLayer) -> KeptState:
    """The state of a layer, from which the same state can be read again. Of a `Growing` only what is new is validated.

    Raises:
        pydantic.ValidationError: It is invalid.
        pydantic_core.PydanticSerializationError: It is no JSON.
        ValueError: It was never set.
    """
    state: BaseModel | None = getattr(layer, "runtime_state", None)
    model = layer.runtime_state_type
    if type(state) is EmptyRuntimeState and model is EmptyRuntimeState:
        return NOTHING_KEPT
    if state is None:
        kind = type(layer).__name__
        raise ValueError(
            f"{kind} has no runtime_state: {model.__name__} has required fields, so override "
            f"{kind}.initial_runtime_state, or set it in the factory"
        )
    growing = growing_fields(model)
    if not growing:
        text = state.model_dump_json(by_alias=True, round_trip=True, warnings=False)
        model.model_validate_json(text)
        return KeptState(from_json(text))
    lists = {name: found for name in growing if isinstance(found := getattr(state, name), Growing)}
    text = state.model_dump_json(by_alias=True, round_trip=True, warnings=False, exclude=set(lists) or None)
    model.model_validate_json(text)
    for name, items in lists.items():
        _validate_new(model, name, items)
    return KeptState(from_json(text), {name: items.frozen() for name, items in lists.items()}, model)


def fill(layer: AnyLayer, unread: UnreadLists) -> None:
    """Give the growing lists of a layer's state what a session has."""
    for name, items in unread.items():
        growing: Growing[Any] = getattr(layer.runtime_state, name)
        growing.fill(items, _reader(layer.runtime_state, name))


def growing_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Names of the fields that are `Growing` and have a default."""
    if model not in _fields:
        found = model.__pydantic_fields__.items()
        _fields[model] = tuple(name for name, info in found if _is_growing(info.annotation) and not info.is_required())
    return _fields[model]


def items_adapter(model: type[BaseModel], name: str) -> TypeAdapter[list[Any]]:
    """Reads and writes the items of a list of a state, as the model says bytes, times and floats are written."""
    key = (model, name)
    if key not in _adapters:
        annotation: Any = model.__pydantic_fields__[name].annotation
        if _is_growing(annotation):
            annotation = GenericAlias(list, get_args(annotation) or (Any,))
        _adapters[key] = TypeAdapter(annotation, config=model.model_config)
    return _adapters[key]


_fields: dict[type[BaseModel], tuple[str, ...]] = {}
_adapters: dict[tuple[type[BaseModel], str], TypeAdapter[list[Any]]] = {}


def _reader(state: BaseModel, name: str) -> Callable[[bytes], list[Any]]:
    """Reads items; an error has a note of where they come from, as they were put down, if the state says it."""
    adapter, origin = items_adapter(type(state), name), getattr(state, "origin", None)
    said = f"in a list '{name}' that was put down before" if origin is None else origin()

    def read(json: bytes) -> list[Any]:
        try:
            return adapter.validate_json(json)
        except ValidationError as unreadable:
            unreadable.add_note(said)
            raise

    return read


def _is_growing(annotation: object) -> bool:
    return (get_origin(annotation) or annotation) is Growing


def json_of(item: msgspec.Raw) -> JsonValue:
    """An unread item as JSON; not validated."""
    found: JsonValue = from_json(bytes(item))
    return found


def _validate_new(model: type[BaseModel], name: str, items: Growing[Any]) -> None:
    adapter, length = items_adapter(model, name), len(items)
    if items.valid < length:
        adapter.validate_json(adapter.dump_json(items[items.valid :], by_alias=True, round_trip=True, warnings=False))
        items.valid = length


def _written(model: type[BaseModel], name: str, items: Sequence[Any]) -> list[JsonValue]:
    adapter = items_adapter(model, name)
    looked_at = [item for item in items if not isinstance(item, msgspec.Raw)]
    dumped = iter(from_json(adapter.dump_json(looked_at, by_alias=True, round_trip=True, warnings=False)))
    return [json_of(item) if isinstance(item, msgspec.Raw) else next(dumped) for item in items]
