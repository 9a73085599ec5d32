"""Building a graph: nodes, configs, providers, dependencies; each problem by its type, several as a group."""

from __future__ import annotations

import inspect
import json
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import JsonValue, TypeAdapter, ValidationError

from dagbok.agents.layers import (
    Compositor,
    CompositorTransformerKwargs,
    LayerConfig,
    LayerDeps,
    LayerNode,
    LayerNodeConfig,
    LayerProvider,
    NodeContext,
    NoLayerDeps,
    ObjectLayer,
    PlainLayer,
    PlainPromptType,
    PlainUserPromptType,
    PromptLayer,
    PromptLayerConfig,
)
from tests.layers.parts import Child, MaybeChild, Other, ParentDeps, Told, Traced, traced


def parent(name: str = "parent") -> LayerNode:
    return traced(Told(), name)[0]


def wrong(value: Any) -> Any:
    """What a type checker would not let pass."""
    return value


async def test_a_dependency_is_bound_by_its_name_or_renamed_and_an_optional_one_is_none() -> None:
    nodes = [parent(), LayerNode("c", Child, deps={"parent": "parent"})]
    async with Compositor(nodes).enter() as run:
        assert run.get_layer("c", Child).deps.parent is run.get_layer("parent")
    nodes = [parent("p"), LayerNode("c", Child, deps={"parent": "p"}), LayerNode("m", MaybeChild)]
    async with Compositor(nodes).enter() as run:
        assert run.get_layer("c", Child).deps.parent is run.get_layer("p")
        assert run.get_layer("m", MaybeChild).deps.parent is None
    with pytest.raises(AttributeError):
        _ = Child().deps


@pytest.mark.parametrize(
    ("nodes", "error", "said"),
    [
        (lambda: [LayerNode("", Other)], ValueError, "must not be empty"),
        (lambda: [LayerNode("x", wrong(int))], TypeError, "Layer subclass or a LayerProvider"),
        (lambda: [LayerNode("x", wrong(Other()))], TypeError, "Layer subclass or a LayerProvider"),
        (lambda: [LayerNode("x", Other), LayerNode("x", Other)], ValueError, "Duplicate layer name 'x'"),
        (lambda: [LayerNode("y", Other, deps={"x": "y"})], ExceptionGroup, "several"),
        (lambda: [parent(), LayerNode("y", Other, deps={"x": "parent"})], ValueError, "unknown dependency keys: x"),
        (lambda: [LayerNode("c", Child, deps={"parent": "x"})], ValueError, "depends on undefined layer names: x"),
        (
            lambda: [LayerNode("c", Child, deps={"parent": "p"}), parent("p")],
            ValueError,
            "must target preceding layer nodes: parent->p",
        ),
        (lambda: [LayerNode("c", Child, deps={"parent": "c"})], ValueError, "preceding layer nodes: parent->c"),
        (lambda: [LayerNode("c", Child)], ValueError, "Dependency 'parent' is required"),
        (lambda: [LayerNode("o", Other), LayerNode("c", Child, deps={"parent": "o"})], TypeError, "Traced, got Other"),
        (lambda: [LayerNode("o", ObjectLayer)], TypeError, r"needs arguments \(value\)"),
    ],
)
def test_a_bad_graph_is_refused_when_it_is_built(nodes: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        Compositor(nodes())


def test_all_problems_are_told_at_once() -> None:
    nodes = [LayerNode("a", Other), LayerNode("a", Other, deps={"k": "z"}), LayerNode("c", Child)]
    with pytest.raises(ExceptionGroup) as caught:
        Compositor(nodes)
    assert [str(each) for each in caught.value.exceptions] == [
        "Duplicate layer name 'a'",
        "Layer 'a' depends on undefined layer names: z",
        "Layer 'a' has unknown dependency keys: k",
        "Layer 'c': Dependency 'parent' is required",
    ]


def test_all_problems_of_a_config_are_told_though_a_type_is_unknown() -> None:
    rows = [
        {"name": "", "type": "plain.prompt"},
        {"name": "a", "type": "gone", "deps": {"k": "z"}},
        {"name": "b", "type": "plain.prompt", "deps": {"k": "a"}},
        {"name": "b", "type": "plain.prompt"},
    ]
    with pytest.raises(ExceptionGroup) as caught:
        Compositor.from_config({"layers": rows}, providers=[PromptLayer])
    assert [each.args[0] for each in caught.value.exceptions] == [
        "Layer type id 'gone' is not registered",
        "Layer node name must not be empty",
        "Layer 'a' depends on undefined layer names: z",
        "Duplicate layer name 'b'",
        "Layer 'b' has unknown dependency keys: k",
    ]


class Left(PlainLayer[NoLayerDeps]):
    pass


class Right(PlainLayer[NoLayerDeps]):
    pass


class Both(Left, Right):
    pass


class RightDeps(LayerDeps):
    right: Right


class BothDeps(LayerDeps):
    both: Both


class OnRight(PlainLayer[RightDeps]):
    pass


class OnBoth(PlainLayer[BothDeps]):
    pass


async def test_a_factory_may_return_a_layer_that_fits_by_another_base() -> None:
    made = LayerProvider.from_factory(layer_type=Left, create=lambda _: Both())
    nodes = [LayerNode("both", made), LayerNode("on", OnRight, deps={"right": "both"})]
    async with Compositor(nodes).enter() as run:
        assert run.get_layer("on", OnRight).deps.right is run.get_layer("both", Both)


async def test_what_a_factory_returns_is_looked_at_before_any_hook() -> None:
    made = LayerProvider.from_factory(layer_type=Left, create=lambda _: Left())
    compositor = Compositor([LayerNode("left", made), LayerNode("on", OnRight, deps={"right": "left"})])
    with pytest.raises(TypeError, match="Dependency 'right' must be Right, got Left"):
        async with compositor.enter():
            pass


def test_a_class_that_is_called_gives_no_subclass() -> None:
    with pytest.raises(TypeError, match="must be Both, got Left"):
        Compositor([LayerNode("left", Left), LayerNode("on", OnBoth, deps={"both": "left"})])


@pytest.mark.parametrize(
    ("deps", "error", "said"),
    [
        ({}, ValueError, "'parent' is required"),
        ({"parent": None}, ValueError, "'parent' is required"),
        ({"parent": Traced("p", Told()), "x": None}, ValueError, "unknown dependency keys: x"),
        ({"parent": Other()}, TypeError, "must be Traced, got Other"),
    ],
)
def test_dependencies_are_checked_when_they_are_made(deps: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ParentDeps(**deps)


CONFIG: dict[str, Any] = {
    "layers": [{"name": "one", "type": "plain.prompt"}, {"name": "two", "type": "plain.prompt", "metadata": {"a": [1]}}]
}


async def test_prompts_of_a_config() -> None:
    compositor = Compositor.from_config({"layers": CONFIG["layers"][:1]}, providers=[PromptLayer])
    async with compositor.enter(configs={"one": {"prefix": "hello", "suffix": "bye", "user": "u"}}) as run:
        assert run.prompts == [PlainPromptType("hello"), PlainPromptType("bye")]
        assert run.user_prompts == [PlainUserPromptType("u")]
        with pytest.raises(KeyError, match="Layer 'x' is not defined"):
            run.get_layer("x")
        with pytest.raises(TypeError, match="Layer 'one' must be Other, got PromptLayer"):
            run.get_layer("one", Other)
    for read in ("prompts", "user_prompts", "tools"):
        with pytest.raises(RuntimeError, match="has ended"):
            getattr(run, read)


async def test_prefixes_in_order_suffixes_in_reverse_then_transformed() -> None:
    transformers: Any = {
        "prompt_transformer": lambda items: [each.value for each in items],
        "user_prompt_transformer": lambda items: [each.value.upper() for each in items],
        "tool_transformer": lambda items: [len(items)],
    }
    configs = {name: {"prefix": f"p{n}", "suffix": f"s{n}", "user": f"u{n}"} for n, name in ((1, "one"), (2, "two"))}
    nodes = [LayerNode("one", PromptLayer), LayerNode("two", PromptLayer)]
    by_hand: Compositor[Any, Any, Any] = Compositor(nodes, **transformers)
    from_config = Compositor.from_config(CONFIG, providers=[PromptLayer], **transformers)
    for compositor in (by_hand, from_config):
        async with compositor.enter(configs=configs) as run:
            assert run.prompts == ["p1", "p2", "s2", "s1"]
            assert (run.user_prompts, run.tools) == (["U1", "U2"], [0])


def test_the_names_of_transformers_are_those_of_both_constructors() -> None:
    names = CompositorTransformerKwargs.__required_keys__
    assert names == {"prompt_transformer", "user_prompt_transformer", "tool_transformer"}
    for made_by in (Compositor.__init__, Compositor.from_config):
        keywords = inspect.signature(made_by).parameters.values()
        assert names <= {each.name for each in keywords if each.kind is each.KEYWORD_ONLY}


def test_a_node_config_has_exactly_four_fields() -> None:
    dumped = LayerNodeConfig(name="n", type="t").model_dump()
    assert dumped == {"name": "n", "type": "t", "deps": {}, "metadata": {}}


async def test_the_provider_of_a_node_wins_over_that_of_its_type() -> None:
    plan: Compositor = Compositor.from_config(CONFIG, providers=[PromptLayer], node_providers={"two": Other})
    async with plan.enter() as run:
        assert [type(run.get_layer(name)) for name in ("one", "two")] == [PromptLayer, Other]
        assert run.get_layer("two") is run.get_layer("two", Other)


async def test_the_provider_of_a_node_needs_no_registered_type() -> None:
    config = {"layers": [{"name": "n", "type": "nowhere"}]}
    async with Compositor.from_config(config, providers=[], node_providers={"n": Other}).enter() as run:
        assert type(run.get_layer("n")) is Other


class Nameless(PlainLayer[NoLayerDeps]):
    pass


@pytest.mark.parametrize(
    ("change", "providers", "node_providers", "error", "said"),
    [
        ({"more": 1}, [PromptLayer], {}, ValidationError, "more"),
        ({"schema_version": 2}, [PromptLayer], {}, ValueError, "schema_version must be 1"),
        ({}, [PromptLayer, Nameless], {}, ValueError, "must declare a type_id"),
        ({}, [PromptLayer, PromptLayer], {}, ValueError, "already registered"),
        ({"layers": [{"name": "x", "type": "no"}]}, [], {}, KeyError, "Layer type id 'no' is not registered"),
        ({}, [PromptLayer], {"x": Other}, ValueError, "unknown layer node names: x"),
    ],
)
def test_a_bad_config_is_refused(
    change: dict[str, Any], providers: Any, node_providers: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        Compositor.from_config(CONFIG | change, providers=providers, node_providers=node_providers)


async def test_classes_and_providers_mixed() -> None:
    def create(config: LayerConfig, node: NodeContext) -> PromptLayer:
        class Instance(PromptLayer):
            @property
            def prefix_prompts(self) -> list[str]:
                return [f"{node.name} {node.metadata['say']}"]

        return Instance()

    made = LayerProvider.from_factory(layer_type=PromptLayer, create=create)
    nodes = [LayerNode("one", PromptLayer), LayerNode("two", made, metadata={"say": "instance"})]
    async with Compositor(nodes).enter(configs={"one": {"prefix": "cfg"}}) as run:
        assert [each.value for each in run.prompts] == ["cfg", "two instance"]


def test_defect_8_a_node_cannot_be_changed() -> None:
    metadata: dict[str, JsonValue] = {"a": [1, {"b": 2}]}
    deps = {"parent": "p"}
    node = LayerNode("n", Child, deps=deps, metadata=metadata)
    metadata["a"], deps["parent"] = 0, "q"
    assert (dict(node.deps), node.metadata) == ({"parent": "p"}, {"a": [1, {"b": 2}]})
    with pytest.raises(AttributeError, match="cannot be changed"):
        node.name = "x"
    with pytest.raises(AttributeError, match="cannot be changed"):
        del node.deps
    assert not hasattr(node.deps, "__setitem__")
    mine: Any = node.metadata
    mine["a"][1]["b"] = mine["c"] = 3
    assert node.metadata == node.context.metadata == {"a": [1, {"b": 2}]}
    with pytest.raises(AttributeError):
        node.context.name = "x"  # type: ignore[misc]


def test_metadata_is_plain_json() -> None:
    given: Any = MappingProxyType({"x": MappingProxyType({"y": (1, {"z": None})})})
    metadata = LayerNode("n", Child, metadata=given).context.metadata
    assert json.dumps(metadata) == '{"x": {"y": [1, {"z": null}]}}'
    assert TypeAdapter(JsonValue).validate_python(metadata["x"]) == {"y": [1, {"z": None}]}


def test_a_provider_tells_its_type_and_makes_layers() -> None:
    provider = LayerProvider.from_layer_type(PromptLayer)
    assert provider.type_id == "plain.prompt"
    assert provider.create_layer({"prefix": ["a", "b"]}).prefix_prompts == ["a", "b"]
    with pytest.raises(TypeError, match="needs arguments"):
        LayerProvider.from_layer_type(ObjectLayer).create_layer()
    with pytest.raises(TypeError, match="family with open types"):
        LayerProvider.from_layer_type(PlainLayer)


def test_a_class_may_make_its_layers_of_a_config_itself() -> None:
    class Titled(PlainLayer[NoLayerDeps, PromptLayerConfig]):
        def __init__(self, title: str) -> None:
            self.title = title

        @classmethod
        def from_config(cls, config: PromptLayerConfig) -> Titled:
            return cls(str(config.prefix))

    compositor = Compositor([LayerNode("t", Titled)])
    assert [node.name for node in compositor.nodes] == ["t"]
    made = LayerProvider.from_layer_type(Titled).create_layer({"prefix": "mine"})
    assert (made.title, made.config.prefix) == ("mine", "mine")


def test_layer_deps_inherit_fields() -> None:
    class More(ParentDeps):
        other: Other | None

    deps = More(parent=Traced("p", Told()))
    assert deps.other is None
    assert isinstance(deps, LayerDeps)
