"""Graphs that change between two runs."""

from __future__ import annotations

from collections.abc import Mapping

from dagbok.agents.layers import Compositor, LayerDeps, LayerNode, LayerProvider, Snapshot, StateMigrator
from tests.layers.parts import Told, Traced


class TracedDeps(LayerDeps):
    """What a traced layer may lean on."""

    on: Traced | None


def kind(type_id: str, version: int = 1, migrators: Mapping[int, StateMigrator] | None = None) -> type[Traced]:
    """A class of traced layers of its own."""
    more = {"type_id": type_id, "state_version": version, "state_migrators": migrators or {}, "deps_type": TracedDeps}
    return type(type_id, (Traced,), more)


def node(told: Told, name: str, layer: type[Traced] | None = None, on: str | None = None) -> LayerNode:
    """A node of a traced layer, which tells what happens to it under `name`, with a mark where its class is another."""
    layer = layer or KIND
    said = name if layer is KIND else f"{name}:{layer.type_id}"
    made = LayerProvider.from_factory(layer_type=layer, create=lambda _: layer(said, told))
    return LayerNode(name, made, deps={} if on is None else {"on": on})


KIND = kind("kind")


async def suspended(*nodes: LayerNode) -> Snapshot:
    """The snapshot of a run that counted in each layer: 1, 2, 3 …"""
    async with Compositor(nodes).enter() as run:
        run.suspend_on_exit()
        for number, each in enumerate(nodes, 1):
            run.get_layer(each.name, Traced).runtime_state.count = number
    assert run.snapshot is not None
    return run.snapshot


def states(snapshot: Snapshot | None) -> dict[str, tuple[str, object]]:
    """By layer: where it stands, and its count."""
    assert snapshot is not None
    return {each.name: (each.lifecycle.value, each.state.get("count")) for each in snapshot.layers}


def hooks(told: Told) -> list[str]:
    """What was told, without resources."""
    return [each for each in told.log if ".res." not in each]
