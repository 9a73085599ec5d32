"""Entering: what a run makes, what it refuses, and what it leaves behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ConfigDict, ValidationError, field_validator

from dagbok.agents.layers import (
    Compositor,
    CompositorSessionSnapshot,
    LayerConfig,
    LayerNode,
    LayerProvider,
    LayerSessionSnapshot,
    LifecycleState,
    NoLayerDeps,
    PlainLayer,
)
from tests.layers.parts import Told, Traced, traced


class Size(LayerConfig):
    size: int = 1


class Sized(PlainLayer[NoLayerDeps, Size]):
    type_id = "sized"


def counted(made: list[Any]) -> LayerProvider[Sized]:
    def create(config: Size) -> Sized:
        made.append(config)
        return Sized()

    return LayerProvider.from_factory(layer_type=Sized, create=create)


async def test_suspend_snapshot_resume_on_one_compositor() -> None:
    told = Told()
    compositor = Compositor(traced(told, "a"))
    async with compositor.enter() as first:
        first.suspend_on_exit()
    async with compositor.enter(session_snapshot=first.session_snapshot) as second:
        assert second.get_layer("a") is not first.get_layer("a")
    hooks = [each for each in told.log if ".res." not in each]
    assert hooks == ["a.create", "a.suspend", "a.resume", "a.delete"]
    assert second.session_snapshot is not None
    assert {each.lifecycle_state for each in second.session_snapshot.layers} == {LifecycleState.CLOSED}


async def test_two_concurrent_entries_have_different_instances() -> None:
    told = Told()
    compositor = Compositor(traced(told, "a"))
    async with compositor.enter() as one, compositor.enter() as two:
        assert one.get_layer("a") is not two.get_layer("a")
    assert [each for each in told.log if ".res." not in each] == ["a.create", "a.create", "a.delete", "a.delete"]


@pytest.mark.parametrize("config", [{"size": 3}, Size(size=3), '{"size": 3}', b'{"size": 3}'])
async def test_a_factory_sees_the_typed_config_once(config: Any) -> None:
    made: list[Any] = []
    async with Compositor([LayerNode("a", counted(made))]).enter(configs={"a": config}) as run:
        assert made == [Size(size=3)]
        assert run.get_layer("a").config is made[0]


async def test_the_same_instance_again_is_refused_without_a_hook() -> None:
    told = Told()
    kept = Traced("a", told)
    nodes = [LayerNode("a", LayerProvider.from_factory(layer_type=Traced, create=lambda _: kept))]
    async with Compositor(nodes).enter():
        pass
    before = list(told.log)
    with pytest.raises(ValueError, match="fresh layer instance"):
        async with Compositor(nodes).enter():
            pass
    assert told.log == before


async def test_an_unknown_config_name_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown layer node names: x, y"):
        async with Compositor([LayerNode("a", Sized)]).enter(configs={"y": {}, "x": None}):
            pass


@pytest.mark.parametrize("bad", [{"no": 1}, {"size": "?"}])
async def test_a_bad_config_is_refused_before_the_first_factory(bad: dict[str, Any]) -> None:
    made: list[Any] = []
    compositor = Compositor([LayerNode("a", counted(made)), LayerNode("b", Sized)])
    with pytest.raises(ValidationError):
        async with compositor.enter(configs={"b": bad}):
            pass
    assert made == []


async def test_models_that_were_changed_are_validated_again() -> None:
    made: list[Any] = []
    compositor = Compositor([LayerNode("a", counted(made))])
    config: Any = Size()
    config.size = "wrong"
    with pytest.raises(ValidationError):
        async with compositor.enter(configs={"a": config}):
            pass
    slot = LayerSessionSnapshot(name="a", lifecycle_state=LifecycleState.SUSPENDED, runtime_state={})
    snapshot = CompositorSessionSnapshot(layers=[slot])
    slot.lifecycle_state = snapshot.layers[0].lifecycle_state = LifecycleState.ACTIVE
    with pytest.raises(ValidationError, match="ACTIVE is internal-only"):
        async with compositor.enter(session_snapshot=snapshot):
            pass
    assert made == []


async def test_state_changed_in_hooks_and_body_is_what_is_kept() -> None:
    class Counting(Traced):
        async def on_context_create(self) -> None:
            self.runtime_state.count += 1

        async def on_context_resume(self) -> None:
            self.runtime_state.count += 10

        async def on_context_suspend(self) -> None:
            self.runtime_state.count += 100

    told = Told()
    made = LayerProvider.from_factory(layer_type=Counting, create=lambda _: Counting("a", told))
    compositor = Compositor([LayerNode("a", made)])
    async with compositor.enter() as run:
        run.get_layer("a", Counting).runtime_state.count += 1000
        run.suspend_on_exit()
    assert run.session_snapshot is not None
    slot = {"name": "a", "lifecycle_state": "suspended", "runtime_state": {"count": 1101}}
    assert run.session_snapshot.model_dump(mode="json") == {"schema_version": 1, "layers": [slot]}
    async with compositor.enter(session_snapshot=run.session_snapshot.model_dump_json()) as again:
        pass
    assert again.session_snapshot is not None
    slot |= {"lifecycle_state": "closed", "runtime_state": {"count": 1111}}
    assert again.session_snapshot.model_dump(mode="json") == {"schema_version": 1, "layers": [slot]}


async def test_no_snapshot_while_a_layer_is_active() -> None:
    async with Compositor([LayerNode("x", Sized)]).enter() as run:
        assert run.session_snapshot is None
        with pytest.raises(RuntimeError, match="Cannot snapshot active compositor run layers: x"):
            run.snapshot_session()
    assert run.snapshot_session() == run.session_snapshot


@pytest.mark.parametrize(("state", "error"), [("active", ValidationError), ("closed", RuntimeError)])
async def test_an_active_or_closed_snapshot_is_refused_before_a_factory(state: str, error: type[Exception]) -> None:
    made: list[Any] = []
    snapshot = {"schema_version": 1, "layers": [{"name": "a", "lifecycle_state": state, "runtime_state": {}}]}
    with pytest.raises(error, match=r"internal-only|CLOSED snapshots cannot be entered"):
        async with Compositor([LayerNode("a", counted(made))]).enter(session_snapshot=snapshot):
            pass
    assert made == []


async def test_a_snapshot_of_other_layers_a_bad_state_and_a_good_one() -> None:
    told = Told()
    compositor = Compositor(traced(told, "state"))
    slot: dict[str, Any] = {"name": "other", "lifecycle_state": "suspended", "runtime_state": {}}
    with pytest.raises(ValueError, match=r"Expected \[state\], got \[other\]"):
        async with compositor.enter(session_snapshot={"schema_version": 1, "layers": [slot]}):
            pass
    slot |= {"name": "state", "runtime_state": {"count": "?"}}
    with pytest.raises(ValidationError):
        async with compositor.enter(session_snapshot={"schema_version": 1, "layers": [slot]}):
            pass
    assert told.log == []
    slot |= {"runtime_state": {"count": 4}}
    async with compositor.enter(session_snapshot={"schema_version": "1", "layers": [slot]}) as run:
        assert run.get_layer("state", Traced).runtime_state.count == 4
    assert told.log.count("state.resume") == 1
    with pytest.raises(ValueError, match="schema_version must be 1"):
        async with compositor.enter(session_snapshot={"schema_version": 2, "layers": [slot]}):
            pass


async def test_none_as_config_and_an_empty_graph() -> None:
    async with Compositor([LayerNode("a", Sized)]).enter(configs={"a": None}) as run:
        assert run.get_layer("a").config == Size()
    async with Compositor.from_config(b'{"layers": []}', providers=[]).enter() as empty:
        assert empty.prompts == []
    assert empty.session_snapshot == CompositorSessionSnapshot()


async def test_a_factory_of_another_class_is_named() -> None:
    wrong: Any = LayerProvider(layer_type=Sized, create=lambda _: object())
    with pytest.raises(TypeError, match="Sized returned object"):
        async with Compositor([LayerNode("a", wrong)]).enter():
            pass


async def test_intents_change_only_while_the_run_lasts() -> None:
    async with Compositor([LayerNode("a", Sized)]).enter() as run:
        with pytest.raises(KeyError, match="Layer 'x' is not defined"):
            run.suspend_layer_on_exit("x")
        run.suspend_layer_on_exit("a")
        run.delete_layer_on_exit("a")
    assert run.slots["a"].lifecycle_state is LifecycleState.CLOSED
    for change in (run.suspend_on_exit, run.delete_on_exit, lambda: run.delete_layer_on_exit("a")):
        with pytest.raises(RuntimeError, match="closed"):
            change()


async def test_frozen_models_are_configs_too() -> None:
    class Frozen(LayerConfig):
        model_config = ConfigDict(frozen=True)

    class Still(PlainLayer[NoLayerDeps]):
        config_type = Frozen

    async with Compositor([LayerNode("a", Still)]).enter(configs={"a": Frozen()}) as run:
        assert run.get_layer("a").config == Frozen()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_defect_21_a_config_is_validated_once() -> None:
    seen: list[int] = []

    class Watched(LayerConfig):
        size: int

        @field_validator("size")
        @classmethod
        def _see(cls, size: int) -> int:
            seen.append(size)
            return size

    class Watching(PlainLayer[NoLayerDeps]):
        config_type = Watched

    async with Compositor([LayerNode("a", Watching)]).enter(configs={"a": {"size": 1}}):
        pass
    assert seen == [1]


async def test_defect_5_a_snapshot_of_more_fewer_or_moved_layers_is_refused_by_default() -> None:
    async with Compositor(traced(Told(), "a", "b")).enter() as run:
        run.suspend_on_exit()
    for names in (("a",), ("a", "b", "c"), ("b", "a")):
        with pytest.raises(ValueError, match=r"got \[a, b\]"):
            async with Compositor(traced(Told(), *names)).enter(session_snapshot=run.session_snapshot):
                pass
