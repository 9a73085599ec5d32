"""How the layers of one node are made: one for each run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

from dagbok.agents.layers.layer import AnyLayer, Layer
from dagbok.agents.layers.models import LayerConfig, LayerConfigInput
from dagbok.agents.layers.node_context import NodeContext

LayerT = TypeVar("LayerT", bound=AnyLayer, default=AnyLayer)
LayerFactory: TypeAlias = Callable[..., LayerT]
"""Called with the validated config; one with two required positional parameters also gets the `NodeContext`."""


NO_NODE = NodeContext("", {})


class LayerProvider(Generic[LayerT]):
    """Makes layers of one class. It keeps nothing between calls."""

    __slots__ = ("_create", "_takes_context", "layer_type")

    def __init__(self, *, layer_type: type[LayerT], create: LayerFactory[LayerT]) -> None:
        """Take a factory.

        Raises:
            TypeError: `layer_type` is no layer class, or a family whose types are still open.
        """
        given: object = layer_type
        if not (isinstance(given, type) and issubclass(given, Layer)):
            raise TypeError(f"layer_type must be a Layer subclass, got {layer_type!r}")
        if not hasattr(layer_type, "deps_type"):
            raise TypeError(f"{layer_type.__name__} is a family with open types: make a subclass that gives them")
        self.layer_type = layer_type
        self._create = create
        self._takes_context = create is not layer_type and _required_positionals(create) == 2

    @classmethod
    def from_layer_type(cls, layer_type: type[LayerT]) -> LayerProvider[LayerT]:
        """Of a class whose constructor needs no arguments, or that has a `from_config` of its own; else making a layer
        raises TypeError."""
        return cls(layer_type=layer_type, create=layer_type.from_config if _makes_itself(layer_type) else layer_type)

    @classmethod
    def from_factory(cls, *, layer_type: type[LayerT], create: LayerFactory[LayerT]) -> LayerProvider[LayerT]:
        """Of a factory that is called once for each run."""
        return cls(layer_type=layer_type, create=create)

    @property
    def type_id(self) -> str | None:
        """The name of the class in graph configs."""
        return self.layer_type.type_id

    @property
    def makes_itself(self) -> bool:
        """It calls the class: its layers are of that class. What a factory returns may be of any subclass."""
        return self._create is self.layer_type

    def validate_config(self, config: LayerConfigInput = None) -> LayerConfig:
        """The config as the model of the class; None is one with defaults. Raises pydantic's ValidationError."""
        model = self.layer_type.config_type
        if isinstance(config, str | bytes):
            return model.model_validate_json(config)
        if isinstance(config, LayerConfig) and not isinstance(config, model):
            return model.model_validate(config.model_dump(warnings=False))
        return model.model_validate({} if config is None else config)

    def create_layer(self, config: LayerConfigInput = None) -> LayerT:
        """Validate a config and make a layer with it."""
        return self.create_layer_from_config(self.validate_config(config))

    def create_layer_from_config(self, config: LayerConfig, context: NodeContext = NO_NODE) -> LayerT:
        """Make a layer with a config that was validated.

        Raises:
            TypeError: The factory gave something else than the class, or the constructor needs arguments.
            ValueError: The factory gave a layer that it had given before.
        """
        layer = self._made(config, context)
        wanted = self.layer_type
        if not isinstance(layer, wanted):
            raise TypeError(f"The factory of {wanted.__name__} returned {type(layer).__name__}")
        _claim(layer)
        object.__setattr__(layer, "config", config)
        return layer

    def problem(self) -> TypeError | None:
        """Why this provider cannot make a layer, as far as it can be known before."""
        if not self.makes_itself:
            return None
        wanted = _needed_arguments(self.layer_type)
        return _needs_factory(self.layer_type, wanted) if wanted else None

    def _made(self, config: LayerConfig, context: NodeContext) -> LayerT:
        if self._create is not self.layer_type:
            return self._create(config, context) if self._takes_context else self._create(config)
        try:
            return self._create()
        except TypeError:
            wanted = _needed_arguments(self.layer_type)
            if wanted:
                raise _needs_factory(self.layer_type, wanted) from None
            raise


LayerProviderInput: TypeAlias = type[AnyLayer] | LayerProvider[Any]


def as_provider(implementation: object) -> LayerProvider[Any]:
    """A provider as it is, or of a layer class. Raises TypeError for anything else, also for a layer."""
    if isinstance(implementation, LayerProvider):
        return implementation
    if isinstance(implementation, type) and issubclass(implementation, Layer):
        return LayerProvider.from_layer_type(implementation)
    raise TypeError(f"implementation must be a Layer subclass or a LayerProvider, got {implementation!r}")


_CLAIM = "_claimed_as"


def _claim(layer: AnyLayer) -> None:
    """A layer serves one run. The mark is the instance's own id, so a copy of a layer is a fresh one."""
    if getattr(layer, _CLAIM, None) == id(layer):
        raise ValueError(f"A factory must return a fresh layer instance, {type(layer).__name__} was used before")
    object.__setattr__(layer, _CLAIM, id(layer))


def _required_positionals(function: Callable[..., object]) -> int:
    return len(_needed(function, (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)))


def _makes_itself(layer_type: object) -> bool:
    """It is a layer class that overrides `from_config`."""
    default: object = getattr(Layer.from_config, "__func__", None)
    return getattr(getattr(layer_type, "from_config", None), "__func__", default) is not default


def _needed_arguments(layer_type: type[AnyLayer]) -> list[str]:
    if layer_type.__init__ is object.__init__:
        return []
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return _needed(layer_type.__init__, named)[1:]


def _needed(function: Callable[..., object], kinds: tuple[object, ...]) -> list[str]:
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C: it is called with the config
        return []
    return [each.name for each in given if each.kind in kinds and each.default is each.empty]


def _needs_factory(layer_type: type[AnyLayer], arguments: list[str]) -> TypeError:
    return TypeError(
        f"{layer_type.__name__} needs arguments ({', '.join(arguments)}): give a LayerProvider.from_factory instead"
    )
