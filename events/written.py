"""The base of what people write: checked once, at the edge, by pydantic."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from dagbok.events.ids import ID_PATTERN

TaskId = Annotated[str, StringConstraints(pattern=f"^{ID_PATTERN.pattern}$")]
Key = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"\S")]
JsonValue = Any
"""A JSON value, checked by `canonical` (pydantic's own type would copy it)."""

MAX_PROBLEMS: Final = 5

TITLE: Final = "dagbok "
"""How the title of each model here begins. pydantic's error carries it: a model of the user's own may have the same
name."""


class Written(BaseModel):
    """Base of what people write: frozen, and a wrong name is an error rather than ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def problems_of(error: ValidationError) -> str:
    """What pydantic complains of, field and problem, on one line and without its links; the first few of many."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, problem['loc'])) or 'value'}: {problem['msg']}" for problem in found[:MAX_PROBLEMS]]
    more = len(found) - len(told)
    return " ".join("; ".join([*told, *([f"and {more} more"] if more else [])]).split())
