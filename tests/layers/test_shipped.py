"""The plain layers that are shipped, and tools that take an object of the run."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Annotated, Any

import pytest

from dagbok.agents.layers import (
    PLAIN_PROMPT_LAYER_TYPE_ID,
    Compositor,
    DynamicToolsLayer,
    LayerNode,
    LayerProvider,
    ObjectLayer,
    PromptLayer,
    ToolsLayer,
    with_object,
)


class Shop:
    name = "corner"


@with_object(Shop)
def price(shop: Shop, item: str, count: int = 1) -> str:
    """What it costs."""
    return f"{shop.name} {item} {count}"


@with_object(Shop)
async def order(shop: Annotated[Shop | None, "x"], item: str) -> str:
    return f"{getattr(shop, 'name', '')} {item}"


def plain(item: str) -> str:
    return item


def shop_nodes(value: Any) -> list[LayerNode]:
    held = LayerProvider.from_factory(layer_type=ObjectLayer, create=lambda _: ObjectLayer(value))
    tools = LayerProvider.from_factory(
        layer_type=DynamicToolsLayer, create=lambda _: DynamicToolsLayer([price, order, plain])
    )
    return [LayerNode("shop", held), LayerNode("tools", tools, deps={"object_layer": "shop"})]


def test_the_type_id_is_a_constant() -> None:
    assert PromptLayer.type_id == PLAIN_PROMPT_LAYER_TYPE_ID == "plain.prompt"


async def test_plain_tools_are_given_as_they_are() -> None:
    made = LayerProvider.from_factory(layer_type=ToolsLayer, create=lambda _: ToolsLayer([plain]))
    async with Compositor([LayerNode("t", made)]).enter() as run:
        assert [each.value for each in run.tools] == [plain]


async def test_a_bound_tool_looks_and_works_as_if_written_by_hand() -> None:
    def by_hand(item: str, count: int = 1) -> str:
        """What it costs."""
        return f"corner {item} {count}"

    async with Compositor(shop_nodes(Shop())).enter() as run:
        values: list[Any] = [each.value for each in run.tools]
    bound, later, same = values
    assert bound("pear", count=2) == by_hand("pear", count=2)
    assert (bound.__name__, bound.__doc__) == ("price", by_hand.__doc__)
    assert str(inspect.signature(bound)) == "(item: 'str', count: 'int' = 1) -> 'str'"
    assert inspect.get_annotations(bound, eval_str=True) == inspect.get_annotations(by_hand, eval_str=True)
    assert inspect.iscoroutinefunction(later)
    assert await later("fig") == "corner fig"
    assert same is plain


async def test_an_object_of_another_class_is_refused_at_use() -> None:
    async with Compositor(shop_nodes("no shop")).enter() as run:
        with pytest.raises(TypeError, match="price needs an object of Shop, got str"):
            _ = run.tools


def test_a_function_that_cannot_take_the_object_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a first parameter"):
        with_object(Shop)(lambda: None)
    with pytest.raises(ValueError, match="needs a first parameter"):
        with_object(Shop)(lambda *, shop: None)

    def wrong(shop: int) -> None:
        pass

    with pytest.raises(TypeError, match="'shop' does not accept Shop"):
        with_object(Shop)(wrong)
    with_object(Shop)(lambda anything: None)


def test_nothing_of_it_needs_pydantic_ai() -> None:
    code = "import sys, dagbok.agents.layers; print('pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
