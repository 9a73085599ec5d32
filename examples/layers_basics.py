"""An agent of four layers, suspended after one turn and resumed: prompts, an object, tools that use it, a counter.

    python examples/layers_basics.py

No model is called: what a loop would take (prompts and tools) is printed.
"""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from dagbok.agents.layers import (
    Compositor,
    CompositorRun,
    CompositorSessionSnapshot,
    DynamicToolsLayer,
    EmptyLayerConfig,
    LayerProvider,
    NoLayerDeps,
    ObjectLayer,
    PlainLayer,
    PromptLayer,
    with_object,
)

GRAPH = {
    "schema_version": 1,
    "layers": [
        {"name": "rules", "type": "plain.prompt"},
        {"name": "turns", "type": "example.turns"},
        {"name": "shelf", "type": "example.shelf"},
        {"name": "tools", "type": "example.tools", "deps": {"object_layer": "shelf"}},
    ],
}


class Turns(BaseModel):
    """What the counter keeps between runs."""

    count: int = 0


class TurnsLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, Turns]):
    """Counts turns, also over runs."""

    type_id = "example.turns"

    async def on_context_create(self) -> None:
        self.runtime_state.count = 1

    async def on_context_resume(self) -> None:
        self.runtime_state.count += 1

    @property
    def prefix_prompts(self) -> list[str]:
        return [f"This is turn {self.runtime_state.count}."]


@with_object(dict)
def books_of(shelf: dict[str, list[str]], author: str) -> list[str]:
    """The books of an author."""
    return shelf.get(author, [])


def compositor() -> Compositor:
    """The plan: any number of runs are made of it."""
    shelf = {"Lagerlöf": ["Gösta Berlings saga"]}
    return Compositor.from_config(
        GRAPH,
        providers=[PromptLayer, TurnsLayer],
        node_providers={
            "shelf": LayerProvider.from_factory(layer_type=ObjectLayer, create=lambda _: ObjectLayer(shelf)),
            "tools": LayerProvider.from_factory(
                layer_type=DynamicToolsLayer, create=lambda _: DynamicToolsLayer([books_of])
            ),
        },
    )


async def turn(plan: Compositor, snapshot: CompositorSessionSnapshot | None) -> tuple[CompositorRun, list[str]]:
    """One turn: the prompts, then what a tool answers."""
    configs = {"rules": {"prefix": "You know books.", "suffix": "Answer in one line.", "user": "What is there?"}}
    async with plan.enter(configs=configs, session_snapshot=snapshot) as run:
        run.suspend_on_exit()
        said = [str(each.value) for each in [*run.prompts, *run.user_prompts]]
        for tool in run.tools:
            if tool.kind == "plain":
                said.append(f"{tool.value.__name__}: {tool.value(author='Lagerlöf')}")
    return run, said


async def main() -> list[list[str]]:
    """Two turns of one session."""
    plan = compositor()
    first, said = await turn(plan, None)
    _, again = await turn(plan, first.session_snapshot)
    return [said, again]


if __name__ == "__main__":
    for lines in asyncio.run(main()):
        print("\n".join(lines), end="\n\n")
