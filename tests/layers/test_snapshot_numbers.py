"""Numbers in snapshots are read as they were left."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from dagbok.agents.layers import Compositor, EmptyLayerConfig, LayerNode, NoLayerDeps, PlainLayer


class Bound(BaseModel):
    """Its bound may be infinite, which Python's readers of JSON take."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    limit: float = 0


class BoundLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, Bound]):
    type_id = "bound"


async def test_an_infinite_number_is_read_as_it_was_left() -> None:
    plan = Compositor([LayerNode("bound", BoundLayer)])
    async with plan.enter() as run:
        run.suspend_on_exit()
        run.get_layer("bound", BoundLayer).runtime_state.limit = float("inf")
    assert run.snapshot is not None
    async with plan.enter(session_snapshot=run.snapshot.to_json()) as later:
        assert later.get_layer("bound", BoundLayer).runtime_state.limit == float("inf")
