"""What a class gives for the type parameters of a generic base, however its own parameters are called."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, get_args, get_origin

Arguments = tuple[object, ...]
KEPT = "_base_arguments"


def base_arguments(cls: type, root: type) -> Arguments:
    """The arguments that `cls` gives `root`, one for each parameter of `root`; open ones are type variables.

    The first base (depth first) that leads to `root` counts. The answer is kept on the class, so that a subclass has
    one level to look up.
    """
    kept = vars(cls).get(KEPT)
    if kept is None:
        kept = _looked_up(cls, root)
        setattr(cls, KEPT, kept)
    return kept


def keep_arguments(cls: type, arguments: Arguments) -> None:
    """Say what subclasses of `cls` inherit as arguments."""
    setattr(cls, KEPT, arguments)


def _looked_up(cls: type, root: type) -> Arguments:
    if cls is root:
        return parameters(cls)
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        origin = get_origin(base) or base
        if origin is not Generic and isinstance(origin, type) and issubclass(origin, root):
            given = _given(origin, get_args(base))
            return tuple(given.get(each, each) for each in base_arguments(origin, root))
    return parameters(root)


def _given(origin: type, arguments: Arguments) -> dict[object, object]:
    own = parameters(origin)
    given: dict[object, object] = dict(zip(own, arguments, strict=False))
    for each in own[len(arguments) :]:
        given[each] = _default(each)
    return given


def parameters(cls: type) -> tuple[TypeVar, ...]:
    """The type parameters that a class still has."""
    found: tuple[TypeVar, ...] = getattr(cls, "__parameters__", ())
    return found


def _default(variable: TypeVar) -> object:
    has_default: Any = getattr(variable, "has_default", None)
    return variable.__default__ if has_default is not None and has_default() else variable  # type: ignore[attr-defined, unused-ignore]
