"""Every name of Agenton v1, member by member: who wrote against it finds the same names, called in the same way."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from dagbok.agents import layers
from dagbok.agents.layers import (
    Compositor,
    CompositorConfig,
    CompositorRun,
    CompositorSessionSnapshot,
    CompositorTransformerKwargs,
    DynamicToolsLayer,
    EmptyLayerConfig,
    EmptyRuntimeState,
    ExitIntent,
    Layer,
    LayerConfig,
    LayerDeps,
    LayerNode,
    LayerNodeConfig,
    LayerProvider,
    LayerRunSlot,
    LayerSessionSnapshot,
    LifecycleState,
    NoLayerDeps,
    ObjectLayer,
    PlainLayer,
    PlainPromptType,
    PlainToolType,
    PlainUserPromptType,
    PromptLayer,
    PydanticAIPromptType,
    PydanticAIToolType,
    PydanticAIUserPromptType,
    ToolsLayer,
)
from dagbok.agents.layers import pydantic_ai as pydantic_ai_layers
from dagbok.agents.layers.deps import LayerDepSpec
from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.pydantic_ai import PydanticAIBridgeLayer, PydanticAIHistoryLayer

NAMES = """
AllPromptTypes AllToolTypes AllUserPromptTypes Layer LayerConfig LayerConfigValue LayerDeps LifecycleState ExitIntent
EmptyLayerConfig EmptyRuntimeState NoLayerDeps PlainLayer PlainPrompt PlainPromptType PlainUserPrompt
PlainUserPromptType PlainTool PlainToolType PydanticAILayer PydanticAIPrompt PydanticAIPromptType PydanticAIUserPrompt
PydanticAIUserPromptType PydanticAITool PydanticAIToolType Compositor CompositorConfig CompositorConfigValue
CompositorRun CompositorSessionSnapshot CompositorSessionSnapshotValue CompositorTransformer
CompositorTransformerKwargs LayerFactory LayerNode LayerNodeConfig LayerProvider LayerRunSlot LayerSessionSnapshot
LayerConfigInput LayerProviderInput PromptLayer PLAIN_PROMPT_LAYER_TYPE_ID ObjectLayer ToolsLayer DynamicToolsLayer
with_object
"""
TRANSFORMERS = ("prompt_transformer", "user_prompt_transformer", "tool_transformer")
GIVEN = ("prefix_prompts", "suffix_prompts", "user_prompts", "tools")


class Parents(LayerDeps):
    parent: PromptLayer
    spare: PromptLayer | None


class Child(PlainLayer[Parents]):
    pass


class Grandparents(Parents):
    other: ToolsLayer


class Alone(PlainLayer[NoLayerDeps]):
    pass


def called(*_: object, **__: object) -> Any:
    return None


SHAPES: list[tuple[Callable[..., object], Callable[..., object]]] = [
    (
        Compositor,
        lambda nodes, *, prompt_transformer=None, user_prompt_transformer=None, tool_transformer=None: nodes,
    ),
    (
        Compositor.from_config,
        lambda conf,
        *,
        providers,
        node_providers=None,
        prompt_transformer=None,
        user_prompt_transformer=None,
        tool_transformer=None: conf,
    ),
    (Compositor.enter, lambda self, *, configs=None, session_snapshot=None: self),
    (LayerNode, lambda name, implementation, *, deps=None, metadata=None: name),
    (LayerProvider, lambda *, layer_type, create: create),
    (LayerProvider.from_layer_type, lambda layer_type: layer_type),
    (LayerProvider.from_factory, lambda *, layer_type, create: create),
    (LayerProvider.create_layer, lambda self, config=None: self),
    (LayerProvider.validate_config, lambda self, config=None: self),
    (LayerProvider.create_layer_from_config, lambda self, config: self),
    (
        LayerRunSlot,
        lambda layer, lifecycle_state, exit_intent=ExitIntent.DELETE, active_resource_context=None: layer,
    ),
    (LayerDepSpec, lambda layer_type, optional=False: layer_type),
    (CompositorRun.get_layer, lambda self, name, layer_type=None: self),
    (CompositorRun.suspend_on_exit, lambda self: self),
    (CompositorRun.delete_on_exit, lambda self: self),
    (CompositorRun.suspend_layer_on_exit, lambda self, name: self),
    (CompositorRun.delete_layer_on_exit, lambda self, name: self),
    (CompositorRun.snapshot_session, lambda self: self),
    (Layer.from_config, lambda config: config),
    (Layer.dependency_names, lambda: None),
    (Layer.bind_deps, lambda self, deps: self),
    (Layer.resource_context, lambda self: self),
    (Layer.on_context_create, lambda self: self),
    (Layer.on_context_resume, lambda self: self),
    (Layer.on_context_suspend, lambda self: self),
    (Layer.on_context_delete, lambda self: self),
    (ToolsLayer, lambda tool_entries=(): tool_entries),
    (DynamicToolsLayer, lambda tool_entries=(): tool_entries),
    (ObjectLayer, lambda value: value),
    (PydanticAIHistoryLayer.replace_messages, lambda self, messages: self),
    (PydanticAIHistoryLayer.append_messages, lambda self, messages: self),
    (PydanticAIHistoryLayer.clear, lambda self: self),
]


def test_every_name_of_a_module_is_there() -> None:
    assert set(NAMES.split()) <= set(layers.__all__)
    library = {"PydanticAIBridgeLayer", "PydanticAIHistoryLayer", "PYDANTIC_AI_TRANSFORMERS"}
    assert library <= set(pydantic_ai_layers.__all__)


@pytest.mark.parametrize(("ours", "original"), SHAPES, ids=lambda each: getattr(each, "__qualname__", ""))
def test_a_call_that_the_original_takes_is_taken(
    ours: Callable[..., object], original: Callable[..., object]
) -> None:
    here, there = inspect.signature(ours).parameters, inspect.signature(original).parameters
    assert [here[name].replace(annotation=inspect.Parameter.empty) for name in there] == list(there.values())
    order = [name for name, each in here.items() if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    positional = [name for name, each in there.items() if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert order[: len(positional)] == positional
    assert all(each.default is not inspect.Parameter.empty for name, each in here.items() if name not in there)


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (LayerConfig, ""),
        (EmptyLayerConfig, ""),
        (EmptyRuntimeState, ""),
        (LayerNodeConfig, "name type deps metadata"),
        (CompositorConfig, "schema_version layers"),
        (LayerSessionSnapshot, "name lifecycle_state runtime_state"),
        (CompositorSessionSnapshot, "schema_version layers"),
        (PromptLayer.config_type, "prefix user suffix"),
    ],
)
def test_what_is_written_has_the_fields_of_the_original(model: type[BaseModel], fields: str) -> None:
    assert list(model.model_fields) == fields.split()
    assert model.model_config["extra"] == "forbid"


@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        (PlainPromptType, "plain"),
        (PlainUserPromptType, "plain"),
        (PlainToolType, "plain"),
        (PydanticAIPromptType, "pydantic_ai"),
        (PydanticAIUserPromptType, "pydantic_ai"),
        (PydanticAIToolType, "pydantic_ai"),
    ],
)
def test_a_tag_has_a_value_and_a_kind_that_is_no_argument(tag: Callable[[Any], Any], kind: str) -> None:
    made = tag(called)
    assert (made.value, made.kind) == (called, kind)
    assert [each.name for each in dataclasses.fields(made) if each.init] == ["value"]
    assert not hasattr(made, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.value = None


def test_states_and_intents() -> None:
    assert {each.name: each.value for each in LifecycleState} == {
        "NEW": "new", "ACTIVE": "active", "SUSPENDED": "suspended", "CLOSED": "closed"
    }
    assert {each.name: each.value for each in ExitIntent} == {"DELETE": "delete", "SUSPEND": "suspend"}


def test_a_layer_before_it_is_bound() -> None:
    layer = Alone()
    assert (Alone.type_id, Alone.deps_type, Alone.config_type) == (None, NoLayerDeps, EmptyLayerConfig)
    assert (Alone.runtime_state_type, layer.runtime_state) == (EmptyRuntimeState, EmptyRuntimeState())
    with pytest.raises(AttributeError):
        _ = layer.deps


def test_the_names_of_dependencies() -> None:
    class Grandchild(PlainLayer[Grandparents]):
        pass

    assert Alone.dependency_names() == frozenset()
    assert Child.dependency_names() == frozenset({"parent", "spare"})
    assert Grandchild.dependency_names() == frozenset({"parent", "spare", "other"})


def test_binding_takes_what_is_declared_and_nothing_else() -> None:
    child, parent = Child(), PromptLayer()
    child.bind_deps({"parent": parent, "somebody_else": Alone()})
    assert vars(child.deps) == {"parent": parent, "spare": None}
    with pytest.raises(ValueError, match="Dependency 'parent' is required"):
        Child().bind_deps({"spare": parent})


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("layer", [Alone(), ToolsLayer([called]), PromptLayer(), PydanticAIBridgeLayer()])
def test_what_a_layer_gives_is_a_list_of_the_reader(layer: AnyLayer, name: str) -> None:
    layer.config = layer.config_type()
    given = getattr(layer, name)
    assert isinstance(given, list)
    before = list(given)
    given.append(called)
    assert getattr(layer, name) == before, "a list that somebody added to is theirs"


def test_a_subclass_adds_to_what_its_base_gives() -> None:
    class More(ToolsLayer):
        @property
        def tools(self) -> list[Callable[..., Any]]:
            given = super().tools
            assert isinstance(given, list)
            given.append(called)
            return given

    class Some(Alone):
        @property
        def tools(self) -> list[Callable[..., Any]]:
            given = super().tools
            assert isinstance(given, list)
            given.append(called)
            return given

    assert More([print]).tools == [print, called]
    assert Some().tools == [called]


def test_a_node_a_provider_and_a_plan() -> None:
    provider = LayerProvider.from_layer_type(PromptLayer)
    node = LayerNode("n", provider, metadata={"a": 1})
    assert (node.name, node.provider, dict(node.deps), dict(node.metadata)) == ("n", provider, {}, {"a": 1})
    assert (provider.layer_type, provider.type_id) == (PromptLayer, "plain.prompt")
    assert Compositor([node]).nodes == (node,)
    assert CompositorTransformerKwargs.__required_keys__ == set(TRANSFORMERS)


async def test_a_run_has_slots_in_order_its_transformers_and_a_snapshot() -> None:
    nodes = [LayerNode("z", Alone), LayerNode("a", PromptLayer)]
    compositor = Compositor(nodes, prompt_transformer=list, tool_transformer=tuple)
    async with compositor.enter() as run:
        assert list(run.slots) == ["z", "a"]
        assert [getattr(run, name) for name in TRANSFORMERS] == [list, None, tuple]
        assert run.session_snapshot is None
        assert (run.prompts, run.user_prompts, run.tools) == ([], [], [])
        slot = run.slots["z"]
        assert (slot.layer, slot.lifecycle_state) == (run.get_layer("z"), LifecycleState.ACTIVE)
    assert run.session_snapshot == run.snapshot_session()


@pytest.mark.parametrize(
    ("layer", "members"),
    [
        (ObjectLayer("x"), "value"),
        (ToolsLayer(), "tool_entries"),
        (DynamicToolsLayer(), "tool_entries"),
        (PydanticAIHistoryLayer(), "message_history"),
    ],
)
def test_members_of_shipped_layers(layer: AnyLayer, members: str) -> None:
    assert [name for name in members.split() if not hasattr(layer, name)] == []


def test_a_bridge_is_made_and_read_as_in_the_original() -> None:
    assert set(inspect.signature(PydanticAIBridgeLayer).parameters) >= {"prefix", "user", "suffix", "tool_entries"}
    assert isinstance(inspect.getattr_static(PydanticAIBridgeLayer, "run_deps"), property)
    assert PydanticAIBridgeLayer.dependency_names() == frozenset({"object_layer"})
    assert PydanticAIHistoryLayer.type_id == "pydantic_ai.history"
    assert "messages" in PydanticAIHistoryLayer.runtime_state_type.model_fields
