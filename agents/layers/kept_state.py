"""The state of a layer as it was valid last: lists that grow are kept as they are, and written when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import from_json

from dagbok.agents.layers.growing import Growing
from dagbok.agents.layers.growing_fields import growing_fields, items_adapter, written_name
from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.models import EmptyRuntimeState

StateJson = dict[str, JsonValue]
UnreadLists = Mapping[str, Sequence[msgspec.Raw]]
"""Growing lists of one state by their names in JSON, as the JSON of their items."""
NO_LISTS: Final[Mapping[str, Any]] = MappingProxyType({})


class KeptState(NamedTuple):
    """All of a state, by the names that JSON has: `rest` is what does not grow."""

    rest: StateJson
    lists: Mapping[str, tuple[Any, ...]] = NO_LISTS
    model: type[BaseModel] = EmptyRuntimeState

    def json(self) -> StateJson:
        """The state as it is written. Costs what there is."""
        if not self.lists:
            return dict(self.rest)
        return {**self.rest, **{key: self.items(key) for key in self.lists}}

    def items(self, key: str, start: int = 0) -> list[JsonValue]:
        """A list that grows, from a place on. Costs what is behind that place."""
        adapter, items = items_adapter(self.model, growing_fields(self.model)[key]), self.lists[key][start:]
        looked_at = [item for item in items if not isinstance(item, msgspec.Raw)]
        dumped = iter(from_json(adapter.dump_json(looked_at, by_alias=True, round_trip=True, warnings=False)))
        return [json_of(item) if isinstance(item, msgspec.Raw) else next(dumped) for item in items]


NOTHING_KEPT: Final = KeptState({})


def valid_state(layer: AnyLayer) -> KeptState:
    """The state of a layer, from which the same state can be read again. Of a `Growing` only what is new is validated.

    Raises:
        pydantic.ValidationError: It is invalid.
        pydantic_core.PydanticSerializationError: It is no JSON.
        ValueError: It was never set, or has a field that is written under a name from which it is not read.
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
    lists, names = growing_lists(layer), growing_fields(model)
    apart = {names[key] for key in lists} or None
    text = state.model_dump_json(by_alias=True, round_trip=True, warnings=False, exclude=apart)
    _same_fields(state, model.model_validate_json(text), apart or set())
    for key, items in lists.items():
        _validate_new(model, names[key], items)
    return KeptState(from_json(text), {key: items.frozen() for key, items in lists.items()}, model)


def _same_fields(state: BaseModel, read: BaseModel, apart: set[str]) -> None:
    """Refuse what a default would take the place of, without a word, when the state is read again."""
    unset = type(read).__pydantic_fields__.keys() - read.model_fields_set - apart
    for name in unset:
        info, now = type(read).__pydantic_fields__[name], getattr(state, name, None)
        if not info.exclude and now is not getattr(read, name) and now != getattr(read, name):
            field, written = f"{type(state).__name__}.{name}", written_name(type(read), name)
            raise ValueError(f"{field} is written as {written!r} and not read from that: give one alias for both")


def growing_lists(layer: AnyLayer) -> dict[str, Growing[Any]]:
    """The lists of its state that are kept piece by piece, by their names in JSON."""
    state, names = layer.runtime_state, growing_fields(layer.runtime_state_type)
    return {key: found for key, name in names.items() if isinstance(found := getattr(state, name), Growing)}


def fill(layer: AnyLayer, unread: UnreadLists) -> None:
    """Give the growing lists of a layer's state what a session has."""
    names = growing_fields(layer.runtime_state_type)
    for key, items in unread.items():
        growing: Growing[Any] = getattr(layer.runtime_state, names[key])
        growing.fill(items, _reader(layer.runtime_state, names[key]))


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


def json_of(item: msgspec.Raw) -> JsonValue:
    """An unread item as JSON; not validated."""
    found: JsonValue = from_json(bytes(item))
    return found


def _validate_new(model: type[BaseModel], name: str, items: Growing[Any]) -> None:
    adapter, length = items_adapter(model, name), len(items)
    if items.valid < length:
        adapter.validate_json(adapter.dump_json(items[items.valid :], by_alias=True, round_trip=True, warnings=False))
        items.valid = length
