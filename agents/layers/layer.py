"""The layer: one reusable part of an agent."""

from __future__ import annotations

from abc import ABC
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self

from pydantic import BaseModel
from typing_extensions import TypeVar

from dagbok.agents.layers.deps import Dependable, LayerDeps, dep_specs
from dagbok.agents.layers.inference import infer_types
from dagbok.agents.layers.models import EmptyLayerConfig, EmptyRuntimeState, LayerConfig, StateMigrator

DepsT = TypeVar("DepsT", bound=LayerDeps)
PromptT = TypeVar("PromptT")
UserPromptT = TypeVar("UserPromptT")
ToolT = TypeVar("ToolT")
ConfigT = TypeVar("ConfigT", bound=LayerConfig, default=EmptyLayerConfig)
RuntimeStateT = TypeVar("RuntimeStateT", bound=BaseModel, default=EmptyRuntimeState)


class Layer(Dependable, ABC, Generic[DepsT, PromptT, UserPromptT, ToolT, ConfigT, RuntimeStateT]):
    """Base of layers. An instance lives for one run of a compositor; what it keeps longer is `runtime_state`.

    A subclass gives the types as type arguments or as the class attributes below; they are found, and the annotations
    of its dependencies are checked, when the class is made (TypeError). Instances have `config` from the provider,
    `deps` once the run has bound them, and `runtime_state`. When all of a run's layers are made, each is entered in
    the order of the graph: `resource_context`, then `on_context_create` or `on_context_resume`; they are left in
    reverse order: `on_context_suspend` or `on_context_delete`, then `resource_context` ends.
    """

    deps_type: ClassVar[type[LayerDeps]]
    type_id: ClassVar[str | None] = None
    """Name of the class in graph configs; needed where a config names its type."""
    config_type: ClassVar[type[LayerConfig]] = EmptyLayerConfig
    runtime_state_type: ClassVar[type[BaseModel]] = EmptyRuntimeState
    state_version: ClassVar[int] = 1
    """Version of `runtime_state_type`, 1 or more. Raise it when what was suspended before cannot be read any more."""
    state_migrators: ClassVar[Mapping[int, StateMigrator]] = MappingProxyType({})
    """From each earlier version (the key) to the next: they are applied when such a state is resumed."""
    required_env: ClassVar[Sequence[str]] = ()
    """Environment variables without which the layer cannot work, such as the key of a model: a run is refused before
    anything is made, and the variable named."""

    deps: DepsT
    config: ConfigT
    runtime_state: RuntimeStateT

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        infer_types(cls, Layer)

    def __new__(cls, *_: object, **__: object) -> Self:
        layer = super().__new__(cls)
        state = cls.initial_runtime_state()
        if state is not None:
            object.__setattr__(layer, "runtime_state", state)  # a layer may be a frozen dataclass
        return layer

    @classmethod
    def initial_runtime_state(cls) -> RuntimeStateT | None:
        """The state of a layer that was never entered. Override it for a state model with required fields.

        None means that the factory of the provider sets `runtime_state`; a run is refused where nobody did.
        """
        model: Any = cls.runtime_state_type
        return None if any(field.is_required() for field in model.__pydantic_fields__.values()) else model()

    @classmethod
    def from_config(cls, config: ConfigT) -> Self:
        """A layer for one run. Override it where the constructor takes arguments; `config` is set on it in any case."""
        return cls()

    @classmethod
    def dependency_names(cls) -> frozenset[str]:
        """The fields of `deps_type`: what may be bound to a layer of this class."""
        return frozenset(dep_specs(cls.deps_type))

    def bind_deps(self, deps: Mapping[str, Layer[Any, Any, Any, Any, Any, Any] | None]) -> None:
        """Set `deps` from layers by field name; other names are passed over. Errors are those of `LayerDeps`."""
        declared = dep_specs(self.deps_type)
        object.__setattr__(self, "deps", self.deps_type(**{name: deps.get(name) for name in declared}))

    @property
    def prefix_prompts(self) -> Sequence[PromptT]:
        """What it puts before the prompts of later layers."""
        return []

    @property
    def suffix_prompts(self) -> Sequence[PromptT]:
        """What it puts behind all prefixes, and behind the suffixes of later layers."""
        return []

    @property
    def user_prompts(self) -> Sequence[UserPromptT]:
        """What it lets the user say."""
        return []

    @property
    def tools(self) -> Sequence[ToolT]:
        """The tools it gives."""
        return []

    def wrap_prompt(self, prompt: PromptT) -> object:
        """Tag a prompt with the library that it is for; families do."""
        return prompt

    def wrap_user_prompt(self, prompt: UserPromptT) -> object:
        """Tag a user prompt."""
        return prompt

    def wrap_tool(self, tool: ToolT) -> object:
        """Tag a tool."""
        return tool

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        """Hold what the layer needs while it is active: a connection, a process. It sees the error that ends the run.

        It cannot swallow that error. Entering and leaving happen in one task, which is not the caller's.
        """
        yield

    async def on_context_create(self) -> None:
        """The layer is entered for the first time."""

    async def on_context_resume(self) -> None:
        """The layer is entered with the state that it was suspended with."""

    async def on_context_suspend(self) -> None:
        """The run ends and the layer shall be resumed later."""

    async def on_context_delete(self) -> None:
        """The run ends and the layer shall not come back: what it holds outside is deleted here. One that was suspended
        is resumed before, also where it is only dropped or disposed of; it may be tried again after a failure."""


AnyLayer = Layer[Any, Any, Any, Any, Any, Any]
