"""Resuming under a changed graph: refused unless a policy of the layer says otherwise, and told beforehand."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dagbok.agents.layers import (
    Compositor,
    LayerChange,
    LayerNode,
    LayerOutcome,
    NoMigrator,
    ResumeAction,
    ResumePolicy,
    ResumeRules,
    Snapshot,
    SnapshotDiff,
    SnapshotRefused,
    TypeMigrator,
)
from tests.layers.changing import hooks, kind, node, states, suspended
from tests.layers.parts import Told

DROP, MIGRATE, REFUSE, START_NEW = (
    ResumeAction.DROP,
    ResumeAction.MIGRATE,
    ResumeAction.REFUSE,
    ResumeAction.START_NEW,
)


async def resumed(
    snapshot: Snapshot, rules: ResumeRules, *nodes: LayerNode
) -> tuple[dict[str, tuple[str, object]], SnapshotDiff]:
    """The states at the end of a run that resumed and suspended all, and what the dry run before it said."""
    compositor = Compositor(nodes)
    diff = compositor.diff(snapshot, resume=rules)
    async with compositor.enter(session_snapshot=snapshot, resume=rules) as run:
        run.suspend_on_exit()
    assert run.resumed_from == diff
    return states(run.snapshot), diff


def rules(**policies: ResumePolicy) -> ResumeRules:
    return ResumeRules(layers=policies)


async def test_the_same_graph_goes_on_and_says_so() -> None:
    told = Told()
    nodes = [node(told, "a"), node(told, "b", on="a")]
    found, diff = await resumed(await suspended(*nodes), ResumeRules(), *nodes)
    assert found == {"a": ("suspended", 1), "b": ("suspended", 2)}
    assert (diff.same_graph, diff.refused) == (True, ())
    assert [each.outcome for each in diff.layers] == [LayerOutcome.RESUME] * 2


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a"], "b is gone"),
        (["a", "b", "c"], "c is new"),
        (["b", "a"], "b has moved"),
        (["x", "b"], "a is gone, x is new"),
    ],
)
async def test_every_change_is_refused_by_default_before_a_factory_is_called(names: list[str], told: str) -> None:
    log = Told()
    snapshot = await suspended(node(log, "a"), node(log, "b"))
    log.log.clear()
    with pytest.raises(ValueError, match=told) as caught:
        await resumed(snapshot, ResumeRules(), *[node(log, name) for name in names])
    assert f"Expected [{', '.join(names)}], got [a, b]" in str(caught.value)
    assert log.log == []


async def test_what_was_added_starts_new_where_its_policy_says_so() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"))
    told.log.clear()
    policy = rules(b=ResumePolicy(added=START_NEW))
    found, diff = await resumed(snapshot, policy, node(told, "a"), node(told, "b", on="a"))
    assert found == {"a": ("suspended", 1), "b": ("suspended", 0)}
    assert diff.layers[1].changes == (LayerChange.ADDED,)
    assert hooks(told) == ["a.resume", "b.create", "b.suspend", "a.suspend"]


async def test_what_was_removed_is_deleted_before_the_body_with_what_it_leans_on_active() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"), node(told, "b", on="a"))
    told.log.clear()
    policy = ResumeRules(layers={"b": ResumePolicy(removed=DROP)}, retired=[node(told, "b", on="a")])
    async with Compositor([node(told, "a")]).enter(session_snapshot=snapshot, resume=policy) as run:
        told.log.append("body")
        run.suspend_on_exit()
    assert told.log == [
        *("a.res.enter", "a.resume", "b.res.enter", "b.resume", "b.delete", "b.res.exit"),
        *("body", "a.suspend", "a.res.exit"),
    ]
    assert states(run.snapshot) == {"a": ("suspended", 1)}


async def test_nothing_is_dropped_that_nothing_here_can_delete() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"), node(told, "b"))
    policy = rules(b=ResumePolicy(removed=DROP))
    with pytest.raises(ValueError, match=r"nothing here can: give a node of this name of type 'kind'"):
        await resumed(snapshot, policy, node(told, "a"))
    wrong = ResumeRules(layers=policy.layers, retired=[node(told, "b", kind("other"))])
    diff = Compositor([node(told, "a")]).diff(snapshot, resume=wrong)
    assert "give a node" in diff.layers[1].why


@pytest.mark.parametrize("refuse", [REFUSE, "refuse"])
async def test_an_action_that_is_given_as_its_text_is_that_action(refuse: ResumeAction) -> None:
    told = Told()
    graph = [node(told, "a"), node(told, "b")]
    snapshot = await suspended(*graph)
    told.log.clear()
    with pytest.raises(SnapshotRefused, match="b is gone"):
        await resumed(snapshot, rules(b=ResumePolicy(removed=refuse)), graph[0])
    assert hooks(told) == []
    assert ResumePolicy(moved="drop") == ResumePolicy(moved=DROP)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="moved may be"):
        ResumePolicy(moved="forget")  # type: ignore[arg-type]


async def test_what_was_moved_keeps_its_state() -> None:
    told = Told()
    snapshot = await suspended(*[node(told, name) for name in "abcd"])
    moved = rules(a=ResumePolicy(moved=MIGRATE))
    found, diff = await resumed(snapshot, moved, *[node(told, name) for name in "bcda"])
    assert found == {"b": ("suspended", 2), "c": ("suspended", 3), "d": ("suspended", 4), "a": ("suspended", 1)}
    assert {each.name: each.changes for each in diff.layers if each.changes} == {"a": (LayerChange.MOVED,)}


async def test_what_was_moved_may_be_dropped_and_start_new() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"), node(told, "b"))
    told.log.clear()
    moved = ResumeRules(default=ResumePolicy(moved=DROP))
    found, _ = await resumed(snapshot, moved, node(told, "b"), node(told, "a"))
    assert found == {"b": ("suspended", 0), "a": ("suspended", 1)}
    assert hooks(told) == ["b.create", "a.resume", "b.resume", "b.delete", "a.suspend", "b.suspend"]


async def test_what_is_of_another_type_is_deleted_by_its_old_class_and_starts_new() -> None:
    told, other = Told(), kind("other")
    snapshot = await suspended(node(told, "a"))
    told.log.clear()
    policy = ResumeRules(layers={"a": ResumePolicy(retyped=DROP)}, retired=[node(told, "a")])
    found, diff = await resumed(snapshot, policy, node(told, "a", other))
    assert found == {"a": ("suspended", 0)}
    assert hooks(told) == ["a:other.create", "a.resume", "a.delete", "a:other.suspend"]
    assert "a is other, was kind" in str(diff)


async def test_what_is_of_another_type_goes_on_through_a_migrator_of_types() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"))
    other = kind("other", 2, {1: lambda state: {"count": state["count"] + 100}})
    migrate = TypeMigrator("kind", "other", lambda state: {"count": 10 + state["half"]}, from_version=2)
    policy = ResumeRules(
        layers={"a": ResumePolicy(retyped=MIGRATE)},
        type_migrators=[migrate],
        migrators={"kind": {1: lambda state: {"half": state["count"]}}},
    )
    found, _ = await resumed(snapshot, policy, node(told, "a", other))
    assert found == {"a": ("suspended", 111)}, "kind 1 → kind 2 → other 1 → other 2"


async def test_without_a_migrator_of_types_it_says_what_to_do() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"))
    policy = rules(a=ResumePolicy(retyped=MIGRATE))
    with pytest.raises(NoMigrator, match=r"Layer 'a': it is other now.*one of kind.*TypeMigrator\('kind', 'other'"):
        await resumed(snapshot, policy, node(told, "a", kind("other")))


async def test_a_closed_layer_is_refused_or_created_anew() -> None:
    told = Told()
    async with Compositor([node(told, "a"), node(told, "b")]).enter() as run:
        run.suspend_layer_on_exit("a")
    assert run.snapshot is not None
    with pytest.raises(RuntimeError, match="CLOSED snapshots cannot be entered: layer 'b'"):
        await resumed(run.snapshot, ResumeRules(), node(told, "a"), node(told, "b"))
    policy = rules(b=ResumePolicy(closed=START_NEW))
    found, _ = await resumed(run.snapshot, policy, node(told, "a"), node(told, "b"))
    assert found == {"a": ("suspended", 0), "b": ("suspended", 0)}


async def test_all_that_is_wrong_is_told_at_once() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"), node(told, "b"), node(told, "c", kind("k", 7)))
    bad: dict[str, Any] = snapshot.to_data()
    bad["layers"][1]["state"] = {"count": "?"}
    with pytest.raises(ExceptionGroup) as caught:
        async with Compositor([node(told, "b"), node(told, "c", kind("k", 3)), node(told, "d")]).enter(
            session_snapshot=bad
        ):
            pass
    assert [type(each) for each in caught.value.exceptions] == [SnapshotRefused, ValidationError, NoMigrator]


async def test_the_dry_run_reads_well_and_is_data() -> None:
    told, other = Told(), kind("other")
    snapshot = await suspended(node(told, "a"), node(told, "b"), node(told, "c"))
    policy = ResumeRules(
        layers={"b": ResumePolicy(removed=DROP), "new": ResumePolicy(added=START_NEW)}, retired=[node(told, "b")]
    )
    diff = Compositor([node(told, "a"), node(told, "c", other), node(told, "new")]).diff(snapshot, resume=policy)
    assert str(diff).splitlines() == [
        "  a    kind   goes on",
        "! c    other  refused: c is other, was kind",
        "+ new  kind   starts new",
        "- b    kind   deleted: b is gone",
        "cannot be resumed: c refused",
    ]
    data = diff.to_data()
    assert (data["snapshot"], data["same_graph"], data["can_be_resumed"]) == (snapshot.id, False, False)
    assert data["layers"][1] == {
        "name": "c", "outcome": "refuse", "changes": ["retyped"], "lifecycle": "suspended", "cleanly": True,
        "was_type": "kind", "was_version": 1, "is_type": "other", "is_version": 1, "why": "",
    }
    assert str(Compositor([]).diff({"schema_version": 1, "layers": []})) == "no layers"


def test_an_action_that_would_lose_a_state_does_not_fit_its_change() -> None:
    with pytest.raises(ValueError, match="removed may be drop, refuse, not start_new"):
        ResumePolicy(removed=START_NEW)
    with pytest.raises(ValueError, match="retyped may be migrate, drop, refuse, not start_new"):
        ResumePolicy(retyped=START_NEW)
    with pytest.raises(ValueError, match="added may be"):
        ResumePolicy(added=MIGRATE)


async def test_a_refusal_goes_before_a_drop_and_a_drop_before_a_migration() -> None:
    told, other = Told(), kind("other")
    snapshot = await suspended(node(told, "a"), node(told, "b"), node(told, "c"))
    graph = [node(told, "c", other), node(told, "a"), node(told, "b")]
    told.log.clear()
    both = ResumePolicy(moved=REFUSE, retyped=DROP)
    with pytest.raises(ValueError, match="c has moved, c is other, was kind"):
        await resumed(snapshot, ResumeRules(layers={"c": both}, retired=[node(told, "c")]), *graph)
    assert told.log == []
    both = ResumePolicy(moved=MIGRATE, retyped=DROP)
    found, _ = await resumed(snapshot, ResumeRules(layers={"c": both}, retired=[node(told, "c")]), *graph)
    assert found["c"] == ("suspended", 0)
    assert hooks(told).count("c.delete") == 1


async def test_a_snapshot_of_version_1_takes_the_rules_too() -> None:
    told = Told()
    async with Compositor([node(told, "a"), node(told, "b")]).enter() as run:
        run.suspend_on_exit()
    assert run.session_snapshot is not None
    policy = ResumeRules(layers={"b": ResumePolicy(removed=DROP)}, retired=[node(told, "b")])
    async with Compositor([node(told, "a", kind("other"))]).enter(
        session_snapshot=run.session_snapshot, resume=policy
    ):
        pass
    assert hooks(told)[4:] == ["a:other.resume", "b.resume", "b.delete", "a:other.delete"], "it has no types"
