"""The own format: what it says, that it is read as it was written, and that it is gone on with once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from dagbok.agents.layers import (
    ClaimsInMemory,
    Compositor,
    EmptyLayerConfig,
    LayerNode,
    LayerProvider,
    LayerSessionSnapshot,
    LifecycleState,
    NoLayerDeps,
    ObjectLayer,
    PlainLayer,
    Snapshot,
    own_snapshot_of,
    read_snapshot,
)
from dagbok.agents.layers.snapshots.reading import migrate_envelope
from tests.layers.changing import kind, node, states, suspended
from tests.layers.parts import Told, Traced


async def test_a_snapshot_says_types_versions_graph_id_and_parent() -> None:
    told = Told()
    plan = Compositor([node(told, "a", kind("my.kind", 3)), LayerNode("o", ObjectLayerOfNothing)])
    async with plan.enter() as run:
        assert run.snapshot is None
        run.suspend_layer_on_exit("a")
    first = run.snapshot
    assert first is not None
    assert first is run.snapshot, "its id does not change from one look to the next"
    written = json.loads(first.to_json())
    assert written == first.to_data()
    graph = written.pop("graph")
    assert len(graph) == 64
    assert written == {
        "format": "dagbok.layers.snapshot", "schema_version": 3, "id": first.id, "parent": None, "in_order": True,
        "layers": [
            {
                "name": "a", "type": "my.kind", "state_version": 3, "lifecycle": "suspended", "cleanly": True,
                "state": {"count": 0},
            },
            {
                "name": "o", "type": "ObjectLayerOfNothing", "state_version": 1, "lifecycle": "closed",
                "cleanly": True, "state": {},
            },
        ],
    }
    assert read_snapshot(first.to_json().encode()) == first


class ObjectLayerOfNothing(PlainLayer[NoLayerDeps]):
    """A layer without a type id."""


async def test_the_type_of_a_layer_without_a_type_id_is_what_its_graph_config_says() -> None:
    made = LayerProvider.from_factory(layer_type=ObjectLayer, create=lambda _: ObjectLayer(1))
    config = {"layers": [{"name": "shelf", "type": "my.shelf"}]}
    async with Compositor.from_config(config, providers=[], node_providers={"shelf": made}).enter() as run:
        run.suspend_on_exit()
    assert run.snapshot is not None
    assert run.snapshot.layers[0].type == "my.shelf"
    async with Compositor([LayerNode("shelf", made)]).enter() as other:
        other.suspend_on_exit()
    assert other.snapshot is not None
    assert other.snapshot.layers[0].type == "ObjectLayer"
    diff = Compositor.from_config(config, providers=[], node_providers={"shelf": made}).diff(other.snapshot)
    assert diff.refused == (), "the name of the class is one of its names"


async def test_what_was_not_suspended_cleanly_says_so() -> None:
    told = Told({"a.suspend": OSError("late")})
    with pytest.raises(OSError, match="late"):
        async with Compositor([node(told, "a")]).enter() as run:
            run.suspend_on_exit()
    assert run.snapshot is not None
    assert run.snapshot.layers[0].cleanly is False
    assert str(Compositor([node(told, "a")]).diff(run.snapshot)).startswith(
        "  a  kind  goes on (was not suspended cleanly)"
    )


async def test_the_next_snapshot_names_the_one_before_as_its_parent() -> None:
    told = Told()
    plan = Compositor([node(told, "a")])
    first = await suspended(node(told, "a"))
    async with plan.enter(session_snapshot=first.to_json()) as run:
        run.suspend_on_exit()
    assert run.snapshot is not None
    assert (run.snapshot.parent, states(run.snapshot)) == (first.id, states(first))
    assert run.snapshot.id != first.id
    assert run.snapshot.graph == first.graph


async def test_defect_7_a_snapshot_is_resumed_once_or_forked() -> None:
    told = Told()
    plan = Compositor([node(told, "a")])
    first = await suspended(node(told, "a"))
    async with plan.enter(session_snapshot=first):
        pass
    told.log.clear()
    for again in (first, first.to_json(), first.to_data()):
        with pytest.raises(RuntimeError, match=f"{first.id} was resumed or disposed of before.*fork"):
            async with plan.enter(session_snapshot=again):
                pass
    with pytest.raises(RuntimeError, match="was resumed or disposed of before"):
        await plan.dispose(first)
    assert told.log == []
    fork = first.fork()
    assert (fork.parent, fork.layers, fork.id != first.id) == (first.id, first.layers, True)
    async with plan.enter(session_snapshot=fork):
        pass


async def test_a_dry_run_and_a_refusal_do_not_use_a_snapshot_up() -> None:
    told = Told()
    plan = Compositor([node(told, "a")])
    first = await suspended(node(told, "a"))
    plan.diff(first)
    with pytest.raises(ValidationError):
        async with plan.enter(session_snapshot=first, configs={"a": {"no": 1}}):
            pass
    async with plan.enter(session_snapshot=first):
        pass


async def test_after_a_failed_entry_the_snapshot_on_the_error_is_the_one_to_go_on_with() -> None:
    told = Told({"b.resume": OSError("down")})
    plan = Compositor([node(told, "a"), node(told, "b")])
    first = await suspended(node(told, "a"), node(told, "b"))
    with pytest.raises(OSError, match="down") as caught:
        async with plan.enter(session_snapshot=first):
            pass
    told.fails = {}
    left = own_snapshot_of(caught.value)
    assert left is not None
    assert (left.parent, left.layers) == (first.id, first.layers)
    with pytest.raises(RuntimeError, match="before"):
        async with plan.enter(session_snapshot=first):
            pass
    async with plan.enter(session_snapshot=left):
        pass


async def test_a_snapshot_that_was_used_makes_nothing_and_one_whose_layers_cannot_be_made_may_be_tried_again() -> None:
    told, made = Told(), list[str]()
    refused: list[Exception] = []

    def make(_: object) -> Traced:
        made.append("a")
        if refused:
            raise refused[0]
        return Traced("a", told)

    plan = Compositor([LayerNode("a", LayerProvider.from_factory(layer_type=Traced, create=make))])
    first = await suspended(*plan.nodes)
    made.clear()
    refused.append(OSError("no place"))
    for use in (enter_and_leave, Compositor.dispose):
        with pytest.raises(OSError, match="no place") as caught:
            await use(plan, first)
        left = own_snapshot_of(caught.value)
        assert left is not None
        assert (left.parent, left.layers, made) == (first.id, first.layers, ["a"])
        for use_again in (enter_and_leave, Compositor.dispose):
            with pytest.raises(RuntimeError, match="before"):
                await use_again(plan, first)
        assert made == ["a"]
        first = left
        made.clear()
    refused.clear()
    await plan.dispose(first)


async def enter_and_leave(plan: Compositor, snapshot: Snapshot) -> None:
    async with plan.enter(session_snapshot=snapshot):
        pass


async def test_several_compositors_may_share_what_they_know_of_snapshots() -> None:
    told, claims = Told(), ClaimsInMemory()
    first = await suspended(node(told, "a"))
    one, two = (Compositor([node(told, "a")], snapshot_claims=claims) for _ in range(2))
    async with one.enter(session_snapshot=first):
        pass
    with pytest.raises(RuntimeError, match="before"):
        async with two.enter(session_snapshot=first):
            pass


async def test_claims_in_memory_forget_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagbok.agents.layers.snapshots.claims.KEPT_CLAIMS", 2)
    claims = ClaimsInMemory()
    assert [await claims.claim(each) for each in "abac"] == [True, True, False, True]
    assert [await claims.claim(each) for each in "bca"] == [False, False, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"more": 1}, "more"),
        ({"schema_version": 4}, "version 4; this dagbok reads 3 to 3: upgrade it"),
        ({"schema_version": 2}, "version 2, which no migrator leads from"),
        ({"schema_version": "3"}, "version '3'"),
        ({"format": "other"}, r"no snapshot of the format dagbok\.layers\.snapshot"),
        ({"id": ""}, "id"),
        ({"layers": [{"name": "a"}]}, "type"),
    ],
)
async def test_what_is_no_snapshot_of_this_format_is_refused(change: dict[str, Any], said: str) -> None:
    bad = {**(await suspended(node(Told(), "a"))).to_data(), **change}
    for value in (bad, json.dumps(bad)):
        with pytest.raises(ValueError, match=said):
            read_snapshot(value)


async def test_a_layer_stands_in_it_once_and_never_as_active() -> None:
    bad = (await suspended(node(Told(), "a"))).to_data()
    with pytest.raises(ValidationError, match="several layers of one name: a"):
        Compositor([]).diff({**bad, "layers": bad["layers"] * 2})
    bad["layers"][0]["lifecycle"] = "active"
    with pytest.raises(ValidationError, match="ACTIVE is internal-only"):
        read_snapshot(bad)
    plain = {"name": "a", "lifecycle_state": "new", "runtime_state": {}}
    with pytest.raises(ValueError, match="several layers of one name: a"):
        Compositor([]).diff({"schema_version": 1, "layers": [plain, plain]})


@pytest.mark.parametrize("text", ['"dagbok.layers.snapshot"', "dagbok.layers.snapshot", "[]", "{"])
def test_text_that_only_mentions_the_format_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"no JSON|no snapshot|JSON"):
        read_snapshot(text)
    with pytest.raises(ValidationError):
        Compositor([]).diff(text)


def test_the_envelope_is_migrated_step_by_step_and_the_given_one_is_left_alone() -> None:
    given = {"schema_version": 3, "layers": [{"name": "a"}]}

    def to_4(document: dict[str, Any]) -> dict[str, Any]:
        document["layers"][0]["place"] = 0
        return document

    steps = {3: to_4, 4: lambda document: {**document, "more": True}}
    assert migrate_envelope(given, steps, 5) == {
        "schema_version": 5,
        "layers": [{"name": "a", "place": 0}],
        "more": True,
    }
    assert given == {"schema_version": 3, "layers": [{"name": "a"}]}
    with pytest.raises(ValueError, match="version 4, which no migrator leads from to 5"):
        migrate_envelope({"schema_version": 4}, {3: to_4}, 5)


def test_the_state_of_a_layer_of_version_1_is_required() -> None:
    with pytest.raises(ValidationError, match="runtime_state"):
        LayerSessionSnapshot.model_validate({"name": "a", "lifecycle_state": "new"})


async def test_a_state_that_never_was_entered_stands_in_it() -> None:
    class Owned(BaseModel):
        model_config = ConfigDict(extra="forbid")
        owner: str

    class Owning(PlainLayer[NoLayerDeps, EmptyLayerConfig, Owned]):
        @classmethod
        def initial_runtime_state(cls) -> Owned:
            return Owned(owner="me")

    written: dict[str, Any] = {"name": "a", "state_version": 1, "lifecycle": LifecycleState.NEW}
    written |= {"type": Owning.__qualname__, "state": {"owner": "you"}}
    snapshot = Snapshot.model_validate({"layers": [written]})
    async with Compositor([LayerNode("a", Owning)]).enter(session_snapshot=snapshot) as run:
        assert run.get_layer("a", Owning).runtime_state == Owned(owner="you")
