"""The types of a layer class: from attributes, type arguments under any name, or what it inherits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Optional, TypeVar

import pytest
from pydantic import BaseModel

from dagbok.agents.layers import (
    Compositor,
    EmptyLayerConfig,
    EmptyRuntimeState,
    LayerConfig,
    LayerDeps,
    LayerNode,
    LayerProvider,
    NoLayerDeps,
    PlainLayer,
    PydanticAILayer,
    PydanticAIPrompt,
    PydanticAITool,
)
from dagbok.agents.layers.deps import dep_specs
from tests.layers.parts import Count, Other

Banana = TypeVar("Banana", bound=LayerConfig)
Cherry = TypeVar("Cherry", bound=BaseModel)
T = TypeVar("T")


class Words(LayerConfig):
    text: str = ""


class Renamed(PlainLayer[NoLayerDeps, Banana, Cherry], Generic[Cherry, Banana]):
    """A template whose parameters have other names and another order."""


class Concrete(Renamed[Count, Words]):
    pass


class Inherits(Concrete):
    pass


class Required(BaseModel):
    owner: str


class Owned(PlainLayer[NoLayerDeps, EmptyLayerConfig, Required]):
    @classmethod
    def initial_runtime_state(cls) -> Required:
        return Required(owner="nobody")


class Unowned(PlainLayer[NoLayerDeps, EmptyLayerConfig, Required]):
    pass


def test_types_come_from_type_arguments() -> None:
    for cls in (Concrete, Inherits):
        assert (cls.deps_type, cls.config_type, cls.runtime_state_type) == (NoLayerDeps, Words, Count)


def test_what_is_not_given_is_empty() -> None:
    assert (Other.config_type, Other.runtime_state_type) == (EmptyLayerConfig, EmptyRuntimeState)

    class Ai(PydanticAILayer[NoLayerDeps, int, Words]):
        pass

    assert (Ai.config_type, Ai.runtime_state_type) == (Words, EmptyRuntimeState)


def test_an_attribute_wins_and_is_inherited() -> None:
    class Said(Concrete):
        config_type = EmptyLayerConfig

    class Below(Said):
        pass

    assert (Below.config_type, Below.runtime_state_type) == (EmptyLayerConfig, Count)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("config_type", "Wrong.config_type must be a LayerConfig subclass."),
        ("runtime_state_type", "Wrong.runtime_state_type must be a BaseModel subclass."),
        ("deps_type", "Wrong.deps_type must be a LayerDeps subclass."),
    ],
)
def test_a_wrong_type_is_told_when_the_class_is_made(attribute: str, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        type("Wrong", (Other,), {attribute: int})
    assert str(caught.value) == message


def test_a_family_without_its_dependencies_is_refused() -> None:
    with pytest.raises(TypeError, match="must give its deps_type"):
        type("Bare", (PlainLayer,), {})


def bad_deps(annotation: object) -> type[LayerDeps]:
    return type("Bad", (LayerDeps,), {"__annotations__": {"field": annotation}})


@pytest.mark.parametrize("annotation", [int, list[Other], Other | Concrete | None, Any, "Nowhere"])
def test_a_wrong_annotation_is_told_when_the_layer_class_is_made(annotation: object) -> None:
    with pytest.raises(TypeError, match="Bad"):
        type("Wrong", (Other,), {"deps_type": bad_deps(annotation)})


def test_annotations_that_are_understood() -> None:
    class Good(LayerDeps):
        plain: Other
        maybe: Other | None
        older: Optional[Other]  # noqa: UP045
        generic: Renamed[Count, Words]

    specs = dep_specs(Good)
    assert {name: spec.optional for name, spec in specs.items()} == {
        "plain": False,
        "maybe": True,
        "older": True,
        "generic": False,
    }
    assert specs["generic"].layer_type is Renamed
    assert dep_specs(Good) is specs


def test_defect_9_a_dataclass_with_slots_is_made_twice_and_stays_the_same() -> None:
    @dataclass(slots=True, eq=False)
    class Slotted(PlainLayer[NoLayerDeps, Words, Count]):
        size: int = 1

    assert (Slotted.config_type, Slotted.runtime_state_type) == (Words, Count)
    assert LayerProvider.from_layer_type(Slotted).create_layer({"text": "a"}).config == Words(text="a")


async def test_defect_10_a_state_with_required_fields_starts_from_a_factory() -> None:
    async with Compositor([LayerNode("a", Owned)]).enter() as run:
        run.get_layer("a", Owned).runtime_state.owner = "me"
        run.suspend_on_exit()
    assert run.session_snapshot is not None
    assert run.session_snapshot.layers[0].runtime_state == {"owner": "me"}

    def create(_: LayerConfig) -> Unowned:
        layer = Unowned()
        layer.runtime_state = Required(owner="factory")
        return layer

    made = LayerProvider.from_factory(layer_type=Unowned, create=create)
    async with Compositor([LayerNode("a", made)]).enter() as run:
        assert run.get_layer("a", Unowned).runtime_state.owner == "factory"
    with pytest.raises(ValueError, match="initial_runtime_state"):
        async with Compositor([LayerNode("a", Unowned)]).enter():
            pass


async def test_defect_4_a_state_that_cannot_be_kept_fails_alone_and_now() -> None:
    class Counting(PlainLayer[NoLayerDeps, EmptyLayerConfig, Count]):
        pass

    run = None
    with pytest.raises(ValueError, match="valid integer") as caught:  # noqa: PT012 (the run outlives its failure)
        async with Compositor([LayerNode(name, Counting) for name in "abc"]).enter() as run:
            for name in "abc":
                state: Any = run.get_layer(name, Counting).runtime_state
                state.count = "wrong" if name == "b" else 7
            run.suspend_on_exit()
    assert caught.value.__notes__[0].startswith("The state of layer 'b'")
    assert run is not None
    assert run.session_snapshot is not None
    assert [each.runtime_state for each in run.session_snapshot.layers] == [{"count": 7}, {"count": 0}, {"count": 7}]
    assert [name for name, slot in run.slots.items() if slot.uncleanly_suspended] == ["b"]


def test_names_of_pydantic_ai_have_their_parameter_without_it() -> None:
    for name in (PydanticAIPrompt, PydanticAITool):
        assert name[int] != name[str]
