"""Names of tools are checked when the tools of a run are read, for whichever library they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dagbok.agents.layers import Compositor, LayerNode, LayerProvider, ToolsLayer


def look() -> None:
    """A tool."""


def listen() -> None:
    """Another one."""


def toolbox(name: str, *functions: Callable[..., Any]) -> LayerNode:
    made = LayerProvider.from_factory(layer_type=ToolsLayer, create=lambda _: ToolsLayer(functions))
    return LayerNode(name, made)


async def test_defect_17_bad_and_duplicate_names_are_all_told_before_an_agent_is_made() -> None:
    def dotted() -> None: ...

    dotted.__name__ = "shop.look"
    nodes = [toolbox("one", look, dotted), toolbox("two", look, lambda: None)]
    async with Compositor(nodes).enter() as run:
        with pytest.raises(ValueError, match="Tools cannot be named so") as caught:
            _ = run.tools
    told = str(caught.value)
    assert "'look' is given 2 times" in told
    assert "'shop.look' is not 1 to 64 letters" in told
    assert "'<lambda>' is not" in told


async def test_good_names_pass_and_what_has_no_name_is_not_checked() -> None:
    async with Compositor([toolbox("one", look, listen, partial(look))]).enter() as run:
        assert len(run.tools) == 3
