"""Tagged values: which library a prompt or tool of a layer is for.

Nothing here imports Pydantic AI: its tags hold values whose types only a type checker looks up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

from typing_extensions import TypeVar

if TYPE_CHECKING:
    from pydantic_ai import Tool
    from pydantic_ai.messages import UserContent
    from pydantic_ai.tools import SystemPromptFunc

AgentDepsT = TypeVar("AgentDepsT", default=Any)

PlainPrompt: TypeAlias = str
PlainUserPrompt: TypeAlias = str
PlainTool: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class PlainPromptType:
    """A part of the system prompt, as text."""

    value: PlainPrompt
    kind: Literal["plain"] = field(default="plain", init=False)


@dataclass(frozen=True, slots=True)
class PlainUserPromptType:
    """A part of what the user says, as text."""

    value: PlainUserPrompt
    kind: Literal["plain"] = field(default="plain", init=False)


@dataclass(frozen=True, slots=True)
class PlainToolType:
    """A tool as a function; its name, signature and docstring describe it."""

    value: PlainTool
    kind: Literal["plain"] = field(default="plain", init=False)


if TYPE_CHECKING:
    PydanticAIPrompt: TypeAlias = SystemPromptFunc[AgentDepsT]
    PydanticAIUserPrompt: TypeAlias = UserContent
    PydanticAITool: TypeAlias = Tool[AgentDepsT]
else:  # as unknown to this process as Pydantic AI may be, yet with a type parameter where the real ones have one
    PydanticAIPrompt = PydanticAITool = Callable[[AgentDepsT], Any]
    PydanticAIUserPrompt = Any


@dataclass(frozen=True, slots=True)
class PydanticAIPromptType(Generic[AgentDepsT]):
    """A system prompt function of Pydantic AI."""

    value: PydanticAIPrompt[AgentDepsT]
    kind: Literal["pydantic_ai"] = field(default="pydantic_ai", init=False)


@dataclass(frozen=True, slots=True)
class PydanticAIUserPromptType:
    """A piece of user content of Pydantic AI."""

    value: PydanticAIUserPrompt
    kind: Literal["pydantic_ai"] = field(default="pydantic_ai", init=False)


@dataclass(frozen=True, slots=True)
class PydanticAIToolType(Generic[AgentDepsT]):
    """A tool of Pydantic AI."""

    value: PydanticAITool[AgentDepsT]
    kind: Literal["pydantic_ai"] = field(default="pydantic_ai", init=False)


AllPromptTypes: TypeAlias = PlainPromptType | PydanticAIPromptType[Any]
AllUserPromptTypes: TypeAlias = PlainUserPromptType | PydanticAIUserPromptType
AllToolTypes: TypeAlias = PlainToolType | PydanticAIToolType[Any]
