"""One layer in one run, and its state as it is kept."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_core import to_json

from dagbok.agents.layers.kept_state import NOTHING_KEPT, KeptState, StateJson, valid_state
from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.lifecycle import ExitIntent, LifecycleState
from dagbok.agents.layers.schemas import LayerSessionSnapshot


@dataclass(slots=True)
class LayerRunSlot:
    """A layer of a run: where it stands, and what shall become of it."""

    layer: AnyLayer
    lifecycle_state: LifecycleState
    exit_intent: ExitIntent = ExitIntent.DELETE
    active_resource_context: AbstractAsyncContextManager[object] | None = None
    kept: KeptState = NOTHING_KEPT
    """Its last valid state: as it was entered, or as it was left."""
    exit_error: BaseException | None = None
    """The first error of leaving it: a suspended layer that has one was not suspended cleanly."""

    needs: frozenset[str] = frozenset()
    """Of one that is only here to be deleted, or because such a one depends on it: those that it depends on itself."""

    delete_may_be_tried_again: bool = False
    """True: a delete hook that fails leaves it suspended. It is what a snapshot had, and is only here to be deleted."""

    @property
    def uncleanly_suspended(self) -> bool:
        """It counts as suspended, but its suspend hook, its resource or its state failed."""
        return self.lifecycle_state is LifecycleState.SUSPENDED and self.exit_error is not None

    @property
    def kept_state(self) -> StateJson:
        """Its last valid state as it is written."""
        return self.kept.json()

    def keep_state(self) -> None:
        """Take over the state of the layer, if it could be resumed from. Raises what `valid_state` raises."""
        self.kept = valid_state(self.layer)

    def snapshot(self, name: str) -> LayerSessionSnapshot:
        """The slot as it is written."""
        return LayerSessionSnapshot(name=name, lifecycle_state=self.lifecycle_state, runtime_state=self.kept_state)


def read_state(layer_type: type[AnyLayer], written: StateJson) -> BaseModel:
    """The state that was written. Read as JSON: bytes and strict fields mean something else as Python values."""
    return layer_type.runtime_state_type.model_validate_json(to_json(written))


def hydrate(layer: AnyLayer, state: BaseModel) -> None:
    """Give a layer the state that it was suspended with."""
    object.__setattr__(layer, "runtime_state", state)
