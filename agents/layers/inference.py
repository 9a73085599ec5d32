"""The types of a layer class, found once when the class is made."""

from __future__ import annotations

from typing import Any, TypeVar, get_origin

from pydantic import BaseModel

from dagbok.agents.layers.deps import LayerDeps, dep_specs
from dagbok.agents.layers.generics import base_arguments, keep_arguments, parameters
from dagbok.agents.layers.models import LayerConfig
from dagbok.agents.layers.written_text import is_text

PLACES: tuple[tuple[int, str, type], ...] = (
    (0, "deps_type", LayerDeps),
    (4, "config_type", LayerConfig),
    (5, "runtime_state_type", BaseModel),
)
"""Place among the parameters of `Layer`, attribute that says the same, and what it must be."""


def infer_types(cls: type[Any], root: type[Any]) -> None:
    """Set `deps_type`, `config_type` and `runtime_state_type` where the class does not say them itself.

    An attribute of the class wins; then what it gives for the parameter of `Layer`; then what it inherits. A class
    whose dependencies stay a parameter is a template: its subclasses say them.

    Raises:
        TypeError: A type is missing or of the wrong kind, or an annotation of the dependencies is wrong; a type id is
            no text, or a state version no number from 1 on: no snapshot with them could be read.
    """
    if not (cls.type_id is None or is_text(cls.type_id)):
        raise TypeError(f"{cls.__name__}.type_id must be a text that can be written, or None.")
    if type(cls.state_version) is not int or cls.state_version < 1:
        raise TypeError(f"{cls.__name__}.state_version must be a whole number, 1 or more.")
    arguments = list(base_arguments(cls, root))
    for place, name, kind in PLACES:
        argument = arguments[place]
        found = vars(cls).get(name) or (getattr(cls, name, None) if isinstance(argument, TypeVar) else argument)
        if found is None:
            if parameters(cls):
                continue
            raise TypeError(f"{cls.__name__} must give its {name}: as an attribute, or for the parameter of its base.")
        checked = _of_kind(cls, name, found, kind)
        if name in vars(cls) or not isinstance(argument, TypeVar):
            arguments[place] = checked
        if getattr(cls, name, None) is not checked:
            setattr(cls, name, checked)
    keep_arguments(cls, tuple(arguments))
    if hasattr(cls, "deps_type"):
        dep_specs(cls.deps_type)


def _of_kind(cls: type, name: str, found: object, kind: type) -> Any:
    found = get_origin(found) or found
    if isinstance(found, type) and issubclass(found, kind):
        return found
    raise TypeError(f"{cls.__name__}.{name} must be a {kind.__name__} subclass.")
