"""One layer in one run, and its state as it is kept."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from pydantic import BaseModel, JsonValue
from pydantic_core import from_json, to_json

from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.lifecycle import ExitIntent, LifecycleState
from dagbok.agents.layers.models import EmptyRuntimeState
from dagbok.agents.layers.schemas import LayerSessionSnapshot

StateJson = dict[str, JsonValue]


@dataclass(slots=True)
class LayerRunSlot:
    """A layer of a run: where it stands, and what shall become of it."""

    layer: AnyLayer
    lifecycle_state: LifecycleState
    exit_intent: ExitIntent = ExitIntent.DELETE
    active_resource_context: AbstractAsyncContextManager[object] | None = None
    kept_state: StateJson = field(default_factory=dict)
    """Its last valid state: as it was entered, or as it was left."""
    exit_error: BaseException | None = None
    """The first error of leaving it: a suspended layer that has one was not suspended cleanly."""

    delete_may_be_tried_again: bool = False
    """True: a delete hook that fails leaves it suspended. It is what a snapshot had, and is only here to be deleted."""

    @property
    def uncleanly_suspended(self) -> bool:
        """It counts as suspended, but its suspend hook, its resource or its state failed."""
        return self.lifecycle_state is LifecycleState.SUSPENDED and self.exit_error is not None

    def keep_state(self) -> None:
        """Take over the state of the layer, if it could be resumed from.

        Raises:
            pydantic.ValidationError: It is invalid.
            pydantic_core.PydanticSerializationError: It is no JSON.
            ValueError: It was never set.
        """
        self.kept_state = valid_state(self.layer)

    def snapshot(self, name: str) -> LayerSessionSnapshot:
        """The slot as it is written."""
        return LayerSessionSnapshot(name=name, lifecycle_state=self.lifecycle_state, runtime_state=self.kept_state)


def valid_state(layer: AnyLayer) -> StateJson:
    """The state of a layer as JSON from which the same state can be read again."""
    state: BaseModel | None = getattr(layer, "runtime_state", None)
    model = layer.runtime_state_type
    if type(state) is EmptyRuntimeState and model is EmptyRuntimeState:
        return {}
    if state is None:
        kind = type(layer).__name__
        raise ValueError(
            f"{kind} has no runtime_state: {model.__name__} has required fields, so override "
            f"{kind}.initial_runtime_state, or set it in the factory"
        )
    text = state.model_dump_json(by_alias=True, round_trip=True, warnings=False)
    model.model_validate_json(text)
    written: StateJson = from_json(text)
    return written


def read_state(layer_type: type[AnyLayer], written: StateJson) -> BaseModel:
    """The state that was written. Read as JSON: bytes and strict fields mean something else as Python values."""
    return layer_type.runtime_state_type.model_validate_json(to_json(written))


def hydrate(layer: AnyLayer, state: BaseModel) -> None:
    """Give a layer the state that it was suspended with."""
    object.__setattr__(layer, "runtime_state", state)
