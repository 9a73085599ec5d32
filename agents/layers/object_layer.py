"""A layer that holds an object for those that depend on it."""

from __future__ import annotations

from typing import Generic, TypeVar

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.families import PlainLayer

T = TypeVar("T")


class ObjectLayer(PlainLayer[NoLayerDeps], Generic[T]):
    """`value` is whatever the factory of its provider gives; it is in no snapshot."""

    def __init__(self, value: T) -> None:
        self.value = value
