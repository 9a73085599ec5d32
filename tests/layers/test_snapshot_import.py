"""Snapshots of versions 1 and 2 come in by the rules of their own migration, and what is given stays as it was."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    UserPromptPart,
)

from dagbok.agents.layers import (
    Compositor,
    CompositorSessionSnapshot,
    LayerNode,
    LifecycleState,
    ResumeAction,
    ResumePolicy,
    ResumeRules,
    import_snapshot,
)
from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryLayer
from dagbok.agents.layers.pydantic_ai import import_snapshot as import_with_calls
from tests.layers.changing import hooks, kind, node, states
from tests.layers.parts import Told


def slot(name: str, lifecycle: str = "suspended", **state: Any) -> dict[str, Any]:
    return {"name": name, "lifecycle_state": lifecycle, "runtime_state": state}


def version_1(*slots: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schema_version": 1, "layers": list(slots), **more}


def version_2(**layers: Any) -> dict[str, Any]:
    return {"schema_version": 2, "layers": layers}


async def test_version_1_keeps_order_and_lifecycle_and_has_no_types() -> None:
    given = version_1(slot("a", count=3), slot("b", "new"))
    before = deepcopy(given)
    text, model = json.dumps(given), CompositorSessionSnapshot.model_validate(given)
    for value in (given, text, text.encode(), model):
        found = import_snapshot(value)
        assert states(found) == {"a": ("suspended", 3), "b": ("new", None)}
        assert {each.type for each in found.layers} == {None}
        assert (found.in_order, found.graph, found.parent) == (True, None, None)
    assert given == before
    told = Told()
    async with Compositor([node(told, "a"), node(told, "b")]).enter(session_snapshot=found) as run:
        run.suspend_on_exit()
    assert states(run.snapshot) == {"a": ("suspended", 3), "b": ("suspended", 0)}
    assert hooks(told)[:2] == ["a.resume", "b.create"]


def test_a_closed_layer_of_version_1_starts_with_an_empty_state() -> None:
    assert states(import_snapshot(version_1(slot("a", "closed", count=3)))) == {"a": ("new", None)}


async def test_version_2_is_a_map_without_an_order() -> None:
    given = version_2(b={"count": 2}, a={"count": 1})
    before = deepcopy(given)
    found = import_snapshot(given)
    assert given == before
    assert {each.lifecycle for each in found.layers} == {LifecycleState.SUSPENDED}
    assert found.in_order is False
    told = Told()
    async with Compositor([node(told, "a"), node(told, "b")]).enter(session_snapshot=found) as run:
        run.suspend_on_exit()
    assert states(run.snapshot) == {"a": ("suspended", 1), "b": ("suspended", 2)}
    assert run.snapshot is not None
    assert run.snapshot.in_order is True


async def test_a_layer_that_the_graph_does_not_know_is_refused_by_its_policy() -> None:
    found = import_snapshot(version_2(a={"count": 1}, gone={}))
    told = Told()
    plan = Compositor([node(told, "a")])
    with pytest.raises(ValueError, match="gone is gone"):
        async with plan.enter(session_snapshot=found):
            pass
    drops = ResumeRules(
        layers={"gone": ResumePolicy(removed=ResumeAction.DROP)}, retired=[node(told, "gone", kind("any"))]
    )
    async with plan.enter(session_snapshot=found, resume=drops):
        pass
    assert "gone:any.delete" in told.log


async def test_states_of_another_version_are_migrated_like_any_other() -> None:
    told = Told()
    layer = kind("k", 3, {2: lambda state: {"count": state["count"] * 2}})
    found = import_snapshot(version_2(a={"count": 4}), state_versions={"a": 2})
    async with Compositor([node(told, "a", layer)]).enter(session_snapshot=found) as run:
        run.suspend_on_exit()
    assert states(run.snapshot) == {"a": ("suspended", 8)}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (version_1(more=1), "more"),
        ({"schema_version": 2, "layers": {}, "more": 1, "other": 2}, "more, other"),
        (version_1({"name": "a"}), "lifecycle_state"),
        (version_1({"name": "a", "lifecycle_state": "new"}), "runtime_state"),
        (version_1({**slot("a"), "more": 1}), "more"),
        (version_1(slot("a", "active")), "ACTIVE"),
        (version_1(slot("a", "other")), "lifecycle_state"),
        (version_1(slot("a"), slot("a")), "several layers of one name: a"),
        (version_2(a=[]), "an object: not that of a"),
        ({"schema_version": 2, "layers": []}, "an object by name, not list"),
        ({"schema_version": 2}, "an object by name, not NoneType"),
        ({"schema_version": 7, "layers": {}}, "version 7 cannot be imported"),
        ("[]", "no JSON object"),
        ("{", "Expecting"),
        ('{"schema_version": 2, "layers": {"a": {}, "a": {}}}', "'a' twice"),
    ],
)
def test_what_their_own_migration_refuses_is_refused(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        import_snapshot(value)


async def test_one_of_the_own_format_comes_through_as_it_is() -> None:
    first = import_snapshot(version_1(slot("a")))
    assert import_snapshot(first) is first
    assert import_snapshot(first.to_json()) == first


def messages(*tools: str) -> list[Any]:
    """A conversation that ends with calls which nobody answered."""
    calls = [ToolCallPart(tool, {}, tool_call_id=f"call of {tool}") for tool in tools]
    said: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("hello")]), ModelResponse(parts=calls)]
    dumped: list[Any] = ModelMessagesTypeAdapter.dump_python(said, mode="json")
    return dumped


@pytest.mark.parametrize("version", [1, 2])
async def test_a_call_that_waited_for_a_person_is_interrupted(version: int) -> None:
    talk = messages("ask_human", "look")
    given = (
        version_1(slot("history", messages=talk), slot("ask_human"))
        if version == 1
        else version_2(history={"messages": talk}, ask_human={})
    )
    before = deepcopy(given)
    found = import_with_calls(given)
    assert given == before
    assert [each.name for each in found.layers] == ["history"]
    async with Compositor([LayerNode("history", PydanticAIHistoryLayer)]).enter(session_snapshot=found) as run:
        last = run.get_layer("history", PydanticAIHistoryLayer).message_history[-1]
    (part,) = last.parts
    assert (part.part_kind, part.tool_name, part.outcome) == ("tool-return", "ask_human", "interrupted")  # type: ignore[union-attr]


async def test_without_the_layer_no_call_is_touched() -> None:
    talk = messages("ask_human")
    found = import_with_calls(version_1(slot("history", messages=talk)))
    assert found.layers[0].state == {"messages": talk}


def test_an_open_call_is_not_lost_where_nobody_can_close_it() -> None:
    given = version_1(slot("history", messages=messages("ask_human")), slot("ask_human"))
    with pytest.raises(ValueError, match=r"pydantic_ai\.import_snapshot, or give close_calls"):
        import_snapshot(given)
    found = import_snapshot(version_1(slot("history", messages=[]), slot("ask_human")))
    assert [each.name for each in found.layers] == ["history"]
    found = import_snapshot(given, close_calls=lambda state: {"messages": []})
    assert found.layers[0].state == {"messages": []}


async def test_entering_itself_takes_version_1_only() -> None:
    with pytest.raises(ValueError, match="must be 1, got 2"):
        async with Compositor([]).enter(session_snapshot={"schema_version": 2, "layers": []}):
            pass
