"""Prompts and tools of Pydantic AI in a layer, and plain ones made into such."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ImageUrl, ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from dagbok.agents.layers import (
    Compositor,
    DynamicToolsLayer,
    LayerNode,
    LayerProvider,
    ObjectLayer,
    PlainPromptType,
    PlainToolType,
    PlainUserPromptType,
    PromptLayer,
    PydanticAIPromptType,
    PydanticAIToolType,
    PydanticAIUserPromptType,
    ToolsLayer,
    with_object,
)
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS, PydanticAIBridgeLayer
from dagbok.agents.layers.pydantic_ai.transformers import prompts, tools, user_prompts


@dataclass
class Shop:
    name: str


def is_in_stock(context: RunContext[Shop], item: str) -> str:
    """Whether an item is there."""
    return f"{item} is at {context.deps.name}"


async def opens(context: RunContext[Shop]) -> str:
    return f"you sell for {context.deps.name}"


def add(left: int, right: int) -> int:
    """Sum of two numbers."""
    return left + right


PICTURE = ImageUrl("https://example.org/a.png")


def bridge(**given: Any) -> LayerNode:
    provider = LayerProvider.from_factory(
        layer_type=PydanticAIBridgeLayer, create=lambda _: PydanticAIBridgeLayer[Shop](**given)
    )
    return LayerNode("bridge", provider, deps={"object_layer": "shop"})


def shop() -> LayerNode:
    provider = LayerProvider.from_factory(layer_type=ObjectLayer, create=lambda _: ObjectLayer(Shop("Ada's")))
    return LayerNode("shop", provider)


def toolbox(*functions: Callable[..., Any]) -> LayerNode:
    return LayerNode("tools", LayerProvider.from_factory(layer_type=ToolsLayer, create=lambda _: ToolsLayer(functions)))


async def test_it_gives_prompts_and_tools_of_both_kinds_and_what_they_run_with() -> None:
    told = {"prefix": ["be kind", opens], "suffix": "be brief", "user": ["look:", PICTURE]}
    node = bridge(**told, tool_entries=[is_in_stock, add])
    async with Compositor([shop(), node]).enter() as run:
        assert run.get_layer("bridge", PydanticAIBridgeLayer).run_deps == Shop("Ada's")
        assert all(isinstance(each, PydanticAIPromptType) for each in run.prompts)
        assert [each.value for each in run.user_prompts] == ["look:", PICTURE]
        assert [each.value.name for each in run.tools if isinstance(each, PydanticAIToolType)] == ["is_in_stock", "add"]


async def test_an_agent_runs_with_what_plain_and_bridge_layers_give() -> None:
    """Prompts in the order of the graph, functions called with the object of the run, as are tools."""
    node = bridge(prefix=opens, suffix="be brief", user="hello", tool_entries=[Tool(is_in_stock), add])
    plain = LayerNode("plain", PromptLayer)
    seen: list[str | None] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info.instructions)
        assert [tool.name for tool in info.function_tools] == ["is_in_stock", "add"]
        return ModelResponse(parts=[TextPart("done")])

    async with Compositor([shop(), plain, node], **PYDANTIC_AI_TRANSFORMERS).enter(
        configs={"plain": {"prefix": "p1", "suffix": "s1", "user": "please"}}
    ) as run:
        agent = Agent(FunctionModel(model), instructions=run.prompts, tools=run.tools, deps_type=Shop)
        deps = run.get_layer("bridge", PydanticAIBridgeLayer).run_deps
        await agent.run(run.user_prompts, deps=deps)
        called = await agent.run("use your tools", deps=deps, model=TestModel())
        assert run.user_prompts == ["please", "hello"]
    assert seen == ["p1\n\nyou sell for Ada's\n\nbe brief\n\ns1"]
    assert "a is at Ada's" in called.output


async def test_plain_prompts_fit_every_place_of_an_agent() -> None:
    async with Compositor([LayerNode("plain", PromptLayer)], **PYDANTIC_AI_TRANSFORMERS).enter(
        configs={"plain": {"prefix": ["one", "two"]}}
    ) as run:
        agent = Agent(TestModel(), system_prompt=run.prompts)
        agent.system_prompt(run.prompts[0])
        result = await agent.run("hi")
    sent = [part.content for part in result.all_messages()[0].parts if hasattr(part, "content")]
    assert sent == ["one", "two", "one", "hi"]


def test_a_plain_prompt_becomes_a_prompt_function() -> None:
    (made,) = prompts([PlainPromptType("be brief")])
    assert made() == "be brief"  # type: ignore[call-arg]


def test_a_native_prompt_stays_as_it_is() -> None:
    assert prompts([PydanticAIPromptType(opens)]) == [opens]


def test_texts_beside_functions_are_functions_so_that_an_agent_keeps_their_order() -> None:
    first, second, third = prompts([PlainPromptType("a"), PydanticAIPromptType(opens), PlainPromptType("b")])
    assert second is opens
    assert (first(), third()) == ("a", "b")  # type: ignore[call-arg]
    assert not isinstance(first, str)


def test_a_plain_user_prompt_becomes_its_text() -> None:
    assert user_prompts([PlainUserPromptType("hello")]) == ["hello"]


def test_native_user_content_stays_as_it_is() -> None:
    assert user_prompts([PydanticAIUserPromptType(PICTURE), PlainUserPromptType("hello")]) == [PICTURE, "hello"]


def test_a_plain_tool_becomes_a_tool() -> None:
    (made,) = tools([PlainToolType(add)])
    assert made.tool_def == Tool(add).tool_def


def test_a_native_tool_stays_as_it_is() -> None:
    native = Tool(add, name="plus")
    assert tools([PydanticAIToolType(native)]) == [native]


async def test_a_bound_tool_is_like_one_that_was_written_by_hand() -> None:
    @with_object(Shop)
    def price(shop: Shop, item: str, pieces: int = 1) -> str:
        """Price of an item.

        Args:
            item: What is bought.
            pieces: How many.
        """
        return f"{pieces} {item} at {shop.name}"

    def by_hand(item: str, pieces: int = 1) -> str:
        """Price of an item.

        Args:
            item: What is bought.
            pieces: How many.
        """
        return f"{pieces} {item} at Ada's"

    def create(config: object) -> DynamicToolsLayer[Shop]:
        return DynamicToolsLayer([price])

    provider = LayerProvider.from_factory(layer_type=DynamicToolsLayer, create=create)
    node = LayerNode("tools", provider, deps={"object_layer": "shop"})
    async with Compositor([shop(), node], **PYDANTIC_AI_TRANSFORMERS).enter() as run:
        (made,) = run.tools
        assert made.tool_def == Tool(by_hand, name="price").tool_def
        hand = Tool(by_hand, name="price")
        said = [(await Agent(TestModel(), tools=[tool]).run("buy")).output for tool in (made, hand)]
    assert said[0] == said[1] == '{"price":"1 a at Ada\'s"}'


async def test_tools_of_one_name_are_refused_before_an_agent_is_made() -> None:
    nodes = [shop(), toolbox(add), bridge(tool_entries=[add])]
    async with Compositor(nodes, **PYDANTIC_AI_TRANSFORMERS).enter() as run:
        with pytest.raises(ValueError, match="'add' is given 2 times"):
            _ = run.tools


async def test_every_name_that_a_provider_would_refuse_is_told() -> None:
    bad = [Tool(add, name=name) for name in ("shop.add", "x" * 65, "fine-1")]
    async with Compositor([shop(), bridge(tool_entries=bad)], **PYDANTIC_AI_TRANSFORMERS).enter() as run:
        with pytest.raises(ValueError, match=r"'shop\.add' is not .*; 'x{65}' is not 1 to 64 letters"):
            _ = run.tools


async def test_the_transformers_are_the_same_for_a_graph_from_a_config() -> None:
    config = {"layers": [{"name": "plain", "type": "plain.prompt"}]}
    plan: Compositor[Any, Any, Any] = Compositor.from_config(
        config, providers=[PromptLayer], **PYDANTIC_AI_TRANSFORMERS
    )
    async with plan.enter(configs={"plain": {"prefix": "hello"}}) as run:
        assert run.prompts[0]() == "hello"


def test_the_base_of_layers_does_without_pydantic_ai() -> None:
    code = "import sys, dagbok.agents.layers, dagbok.agents.layers.durable; print('pydantic_ai' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"




def test_without_pydantic_ai_its_layers_say_what_to_install() -> None:
    code = "import sys; sys.modules['pydantic_ai'] = None; import dagbok.agents.layers.pydantic_ai"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stderr.splitlines()[-1].endswith("need Pydantic AI: pip install 'dagbok[pydantic-ai]'")
