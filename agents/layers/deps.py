"""What a layer depends on: a class whose annotations name other layers."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union, get_args, get_origin, get_type_hints

_SPECS = "_layer_dep_specs"


class Dependable:
    """What a dependency may be. `Layer` is the only class that says so; here, because a layer has dependencies."""


@dataclass(frozen=True, slots=True)
class LayerDepSpec:
    """One dependency: the class it must be of, and whether it may be missing."""

    layer_type: type[Dependable]
    optional: bool = False


class LayerDeps:
    """Base of dependency containers. Annotations of the class, also inherited ones, are its fields.

    A field is annotated `SomeLayer` (required) or `SomeLayer | None` (optional: None when nothing is bound to it).
    """

    def __init__(self, **deps: object) -> None:
        """Bind layers to fields.

        Raises:
            ValueError: A field is unknown, or a required one is missing or None.
            TypeError: A layer is not of the class that its field names, or an annotation is none of the two forms.
        """
        specs = dep_specs(type(self))
        unknown = sorted(deps.keys() - specs.keys())
        if unknown:
            raise ValueError(f"{type(self).__name__} has unknown dependency keys: {', '.join(unknown)}")
        for name, spec in specs.items():
            setattr(self, name, _checked(name, spec, deps.get(name)))


class NoLayerDeps(LayerDeps):
    """The dependencies of a layer that stands alone."""


def dep_specs(deps_type: type[LayerDeps]) -> Mapping[str, LayerDepSpec]:
    """The fields of a container, looked up once per class.

    Raises:
        TypeError: An annotation cannot be resolved, or is neither a layer class nor an optional one.
    """
    kept: Mapping[str, LayerDepSpec] | None = vars(deps_type).get(_SPECS)
    if kept is None:
        kept = types.MappingProxyType({name: _spec(deps_type, name, hint) for name, hint in _hints(deps_type).items()})
        setattr(deps_type, _SPECS, kept)
    return kept


def _hints(deps_type: type[LayerDeps]) -> dict[str, object]:
    try:
        return get_type_hints(deps_type)
    except NameError as unresolved:
        raise TypeError(f"{deps_type.__name__} has an annotation that cannot be resolved: {unresolved}") from unresolved


def _spec(deps_type: type[LayerDeps], name: str, hint: object) -> LayerDepSpec:
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    named = [get_origin(each) or each for each in members if each is not types.NoneType]
    if len(named) == 1 and isinstance(named[0], type) and issubclass(named[0], Dependable):
        return LayerDepSpec(named[0], optional=len(members) > 1)
    field = f"{deps_type.__name__}.{name}"
    raise TypeError(f"{field} must be annotated with a Layer subclass or 'Layer | None', not {hint!r}")


def _checked(name: str, spec: LayerDepSpec, layer: object) -> object:
    if layer is None:
        if spec.optional:
            return None
        raise ValueError(f"Dependency '{name}' is required")
    if not isinstance(layer, spec.layer_type):
        wanted, found = spec.layer_type.__name__, type(layer).__name__
        raise TypeError(f"Dependency '{name}' must be {wanted}, got {found}")
    return layer
