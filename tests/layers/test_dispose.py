"""Deleting what is suspended without a run: no prompt, no model; what fails stays, and can be tried again."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from dagbok.agents.layers import (
    Compositor,
    LayerConfig,
    LayerNode,
    LayerProvider,
    NoMigrator,
    ResumeRules,
    own_snapshot_of,
    snapshot_of,
)
from tests.layers.changing import hooks, kind, node, states, suspended
from tests.layers.parts import Told, Traced


async def test_defect_6_layers_are_deleted_in_reverse_order_with_their_resources() -> None:
    told = Told()
    nodes = [node(told, "a"), node(told, "b", on="a")]
    snapshot = await suspended(*nodes)
    told.log.clear()

    def never(items: object) -> list[object]:
        raise AssertionError("no prompt and no tool is asked for")

    plan = Compositor(nodes, prompt_transformer=never, user_prompt_transformer=never, tool_transformer=never)
    left = await plan.dispose(snapshot)
    assert told.log == [
        *("a.res.enter", "a.resume", "b.res.enter", "b.resume"),
        *("b.delete", "b.res.exit", "a.delete", "a.res.exit"),
    ]
    assert states(left) == {"a": ("closed", 1), "b": ("closed", 2)}
    assert left.parent == snapshot.id


async def test_what_is_not_suspended_is_left_alone() -> None:
    told = Told()
    nodes = [node(told, "a"), node(told, "b")]
    async with Compositor(nodes).enter() as run:
        run.suspend_layer_on_exit("b")
    told.log.clear()
    assert run.snapshot is not None
    left = await Compositor(nodes).dispose(run.snapshot)
    assert hooks(told) == ["b.resume", "b.delete"]
    assert states(left) == {"a": ("closed", 0), "b": ("closed", 0)}
    told.log.clear()
    assert states(await Compositor(nodes).dispose(left)) == states(left)
    assert told.log == []


async def test_what_a_suspended_layer_depends_on_is_created_for_it_and_deleted_again() -> None:
    told = Told()
    nodes = [node(told, "a"), node(told, "b", on="a"), node(told, "c")]
    async with Compositor(nodes).enter() as run:
        run.suspend_layer_on_exit("b")
    told.log.clear()
    assert run.snapshot is not None
    left = await Compositor(nodes).dispose(run.snapshot)
    assert hooks(told) == ["a.create", "b.resume", "b.delete", "a.delete"]
    assert states(left)["b"] == ("closed", 0)


async def test_a_delete_hook_that_fails_leaves_its_layer_and_what_it_needs_for_another_try() -> None:
    failures = {"c.delete": OSError("c"), "a.res.exit": OSError("a")}
    told = Told(dict(failures))
    nodes = [node(told, "a"), node(told, "b"), node(told, "c", on="b"), node(told, "d")]
    told.fails = {}
    snapshot = await suspended(*nodes)
    told.fails, told.log = dict(failures), []
    plan = Compositor(nodes)
    with pytest.raises(ExceptionGroup) as caught:
        await plan.dispose(snapshot)
    assert caught.value.exceptions == (failures["c.delete"], failures["a.res.exit"])
    assert hooks(told) == [
        *("a.resume", "b.resume", "c.resume", "d.resume"),
        *("d.delete", "c.delete", "b.suspend", "a.delete"),
    ]
    left = own_snapshot_of(caught.value)
    assert states(left) == {"a": ("closed", 1), "b": ("suspended", 2), "c": ("suspended", 3), "d": ("closed", 4)}
    assert snapshot_of(caught.value) is None
    told.fails, told.log = {}, []
    assert left is not None
    assert [each.cleanly for each in left.layers] == [False, True, False, True]
    done = await plan.dispose(left)
    assert hooks(told) == ["b.resume", "c.resume", "c.delete", "b.delete"]
    assert {lifecycle for lifecycle, _ in states(done).values()} == {"closed"}


async def test_a_layer_that_cannot_be_resumed_takes_those_along_that_need_it_and_no_others() -> None:
    told = Told({"a.resume": OSError("a"), "e.res.enter": OSError("e")})
    leaning = {"a": None, "b": "a", "c": "b", "d": None, "e": "d"}
    nodes = [node(told, name, on=on) for name, on in leaning.items()]
    told.fails, fails = {}, told.fails
    snapshot = await suspended(*nodes)
    told.fails, told.log = fails, []
    with pytest.raises(ExceptionGroup) as caught:
        await Compositor([*nodes]).dispose(snapshot)
    assert [str(each) for each in caught.value.exceptions] == ["a", "e"]
    assert told.log == [
        *("a.res.enter", "a.resume", "a.res.exit"),
        *("d.res.enter", "d.resume", "e.res.enter"),
        *("d.suspend", "d.res.exit"),
    ]
    assert {lifecycle for lifecycle, _ in states(own_snapshot_of(caught.value)).values()} == {"suspended"}


async def test_layers_that_are_no_more_are_deleted_by_retired_nodes() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"), node(told, "b", kind("was")))
    told.log.clear()
    plan = Compositor([node(told, "b", kind("other"))])
    with pytest.raises(ExceptionGroup) as caught:
        await plan.dispose(snapshot)
    assert [str(each)[:34] for each in caught.value.exceptions] == [
        "Layer 'a' is to be deleted, and no",
        "Layer 'b' is to be deleted, and no",
    ]
    assert told.log == []
    rules = ResumeRules(retired=[node(told, "a"), node(told, "b", kind("was"))])
    await plan.dispose(snapshot, resume=rules)
    assert hooks(told) == ["a.resume", "b:was.resume", "b:was.delete", "a.delete"]


async def test_states_are_migrated_and_configs_are_given_to_what_deletes() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a", kind("k", 1)))
    with pytest.raises(NoMigrator):
        await Compositor([node(told, "a", kind("k", 2))]).dispose(snapshot)

    class Where(LayerConfig):
        url: str

    class Remote(Traced):
        config_type: ClassVar[Any] = Where
        type_id = "k"

    made = LayerProvider.from_factory(
        layer_type=Remote, create=lambda config: Remote(f"a at {config.url}", told)
    )
    told.log.clear()
    with pytest.raises(ValidationError, match="url"):
        await Compositor([LayerNode("a", made)]).dispose(snapshot)
    with pytest.raises(ValueError, match="unknown layer node names: x"):
        await Compositor([LayerNode("a", made)]).dispose(snapshot, configs={"a": {"url": "here"}, "x": {}})
    await Compositor([LayerNode("a", made)]).dispose(snapshot, configs={"a": {"url": "here"}})
    rules = ResumeRules(retired=[LayerNode("a", made)], retired_configs={"a": {"url": "there"}})
    await Compositor([]).dispose(snapshot, resume=rules)
    assert hooks(told) == ["a at here.resume", "a at here.delete", "a at there.resume", "a at there.delete"]


async def test_a_snapshot_is_disposed_of_once() -> None:
    told = Told()
    plan = Compositor([node(told, "a")])
    snapshot = await suspended(node(told, "a"))
    await plan.dispose(snapshot.to_json())
    for again in (plan.dispose(snapshot), plan.enter(session_snapshot=snapshot).__aenter__()):
        with pytest.raises(RuntimeError, match="resumed or disposed of before"):
            await again
    assert told.log.count("a.delete") == 1


async def test_a_snapshot_of_version_1_can_be_disposed_of() -> None:
    told = Told()
    async with Compositor([node(told, "a")]).enter() as run:
        run.suspend_on_exit()
    assert run.session_snapshot is not None
    await Compositor([node(told, "a")]).dispose(run.session_snapshot)
    assert told.log.count("a.delete") == 1


async def test_a_cancellation_while_layers_are_resumed_suspends_them_again() -> None:
    told = Told(waits={"b.resume"})
    nodes = [node(told, "a"), node(told, "b")]
    snapshot = await suspended(*nodes)
    told.log.clear()
    disposing = asyncio.ensure_future(Compositor(nodes).dispose(snapshot))
    await told.reached.wait()
    disposing.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await disposing
    assert told.log == ["a.res.enter", "a.resume", "b.res.enter", "b.resume", "b.res.exit", "a.suspend", "a.res.exit"]
    assert states(own_snapshot_of(caught.value)) == states(snapshot)


async def test_a_cancellation_while_layers_are_deleted_does_not_cut_it() -> None:
    told = Told()
    going = asyncio.Event()

    class Slow(Traced):
        async def on_context_delete(self) -> None:
            going.set()
            for _ in range(3):
                await asyncio.sleep(0)
            await super().on_context_delete()

    made = LayerProvider.from_factory(layer_type=Slow, create=lambda _: Slow("b", told))
    nodes = [node(told, "a"), LayerNode("b", made)]
    snapshot = await suspended(*nodes)
    disposing = asyncio.ensure_future(Compositor(nodes).dispose(snapshot))
    await going.wait()
    disposing.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await disposing
    assert {lifecycle for lifecycle, _ in states(own_snapshot_of(caught.value)).values()} == {"closed"}
