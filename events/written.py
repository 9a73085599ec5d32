"""The base of what people write: checked once, at the edge, by pydantic."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, StringConstraints

from dagbok.events.ids import ID_PATTERN

TaskId = Annotated[str, StringConstraints(pattern=f"^{ID_PATTERN.pattern}$")]
Key = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"\S")]
JsonValue = Any
"""A JSON value, checked by `canonical` (pydantic's own type would copy it)."""

TITLE: Final = "dagbok "
"""How the title of each model here begins. pydantic's error carries it: a model of the user's own may have the same
name."""


class Written(BaseModel):
    """Base of what people write: frozen, and a wrong name is an error rather than ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
