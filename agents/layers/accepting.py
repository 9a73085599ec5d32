"""Whether a parameter takes values of a class, as far as its annotation tells."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints


def first_annotation(function: Callable[..., Any], first: inspect.Parameter) -> object:
    """The annotation of a parameter, resolved; `Any` where there is none or it cannot be resolved."""
    if first.annotation is first.empty:
        return Any
    try:
        return get_type_hints(function, include_extras=True).get(first.name, Any)
    except (NameError, TypeError):
        return Any if isinstance(first.annotation, str) else first.annotation


def accepts(annotation: object, given: type) -> bool:
    """True when every value of `given` may be passed for `annotation`. What cannot be judged is accepted."""
    origin = get_origin(annotation)
    if annotation is Any or isinstance(annotation, TypeVar):
        return True
    if origin is Annotated:
        return accepts(get_args(annotation)[0], given)
    if origin in (Union, types.UnionType):
        return any(accepts(each, given) for each in get_args(annotation))
    expected = origin or annotation
    return not isinstance(expected, type) or issubclass(given, expected)
