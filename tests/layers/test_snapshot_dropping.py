"""A drop or an entry into a changed graph that fails: what is left can be tried again."""

from __future__ import annotations

import pytest

from dagbok.agents.layers import (
    Compositor,
    ResumeAction,
    ResumePolicy,
    ResumeRules,
    own_snapshot_of,
    snapshot_of,
)
from tests.layers.changing import hooks, kind, node, states, suspended
from tests.layers.parts import Told, Traced

DROP, START_NEW = ResumeAction.DROP, ResumeAction.START_NEW


async def test_a_drop_that_fails_leaves_all_suspended_and_can_be_tried_again() -> None:
    failure = OSError("gone")
    told = Told({"c.delete": failure})
    snapshot = await suspended(*[node(told, name) for name in "abc"])
    told.log.clear()
    retired = [node(told, "b"), node(told, "c")]
    policy = ResumeRules(layers={name: ResumePolicy(removed=DROP) for name in "bc"}, retired=retired)
    compositor = Compositor([node(told, "a")])
    with pytest.raises(OSError, match="gone") as caught:
        async with compositor.enter(session_snapshot=snapshot, resume=policy):
            told.log.append("body")
    assert hooks(told) == ["a.resume", "b.resume", "c.resume", "c.delete", "b.delete", "a.suspend"]
    left = own_snapshot_of(caught.value)
    assert states(left) == {"a": ("suspended", 1), "c": ("suspended", 3)}
    assert left is not None
    assert left.parent == snapshot.id
    plain = snapshot_of(caught.value)
    assert plain is not None
    assert [each.name for each in plain.layers] == ["a", "c"]
    told.fails, told.log = {}, []
    async with compositor.enter(session_snapshot=left, resume=policy) as run:
        run.suspend_on_exit()
    assert hooks(told) == ["a.resume", "c.resume", "c.delete", "a.suspend"]
    assert states(run.snapshot) == {"a": ("suspended", 1)}


async def test_a_failed_entry_of_a_changed_graph_can_be_tried_again_as_it_was() -> None:
    told, other = Told({"z.create": OSError("full")}), kind("other")
    snapshot = await suspended(node(told, "a"), node(told, "b"))
    told.log.clear()
    policy = ResumeRules(
        layers={"b": ResumePolicy(retyped=DROP), "z": ResumePolicy(added=START_NEW)}, retired=[node(told, "b")]
    )
    compositor = Compositor([node(told, "a"), node(told, "b", other), node(told, "z")])
    with pytest.raises(OSError, match="full") as caught:
        async with compositor.enter(session_snapshot=snapshot, resume=policy):
            pass
    assert "b.delete" not in told.log
    left = own_snapshot_of(caught.value)
    assert left is not None
    assert {each.name: (each.type, each.lifecycle.value) for each in left.layers} == {
        "a": ("kind", "suspended"),
        "b": ("kind", "suspended"),
    }
    told.fails = {}
    async with compositor.enter(session_snapshot=left, resume=policy) as run:
        assert run.get_layer("a", Traced).runtime_state.count == 1
    assert hooks(told).count("b.delete") == 1


async def test_retired_layers_may_lean_on_each_other_and_on_what_was_never_suspended() -> None:
    told = Told()
    snapshot = await suspended(node(told, "a"), node(told, "b", on="a"))
    told.log.clear()
    gone = ResumePolicy(removed=DROP)
    helped = ResumeRules(default=gone, retired=[node(told, "b", on="h"), node(told, "a"), node(told, "h")])
    async with Compositor([]).enter(session_snapshot=snapshot, resume=helped):
        pass
    assert hooks(told) == ["a.resume", "h.create", "b.resume", "b.delete", "h.delete", "a.delete"]
    circle = ResumeRules(default=gone, retired=[node(told, "b", on="a"), node(told, "a", on="b")])
    with pytest.raises(ValueError, match="depend on each other: a, b, a"):
        async with Compositor([]).enter(session_snapshot=snapshot.fork(), resume=circle):
            pass
    alone = ResumeRules(default=gone, retired=[node(told, "b", on="nowhere"), node(told, "a")])
    with pytest.raises(ValueError, match="'b' is to be deleted and depends on 'nowhere': retire that one too"):
        async with Compositor([]).enter(session_snapshot=snapshot.fork(), resume=alone):
            pass


async def test_what_a_failed_drop_leans_on_is_suspended_for_another_try() -> None:
    failure = OSError("gone")
    told = Told({"c.delete": failure})
    before = [node(told, "p"), node(told, "c", on="p"), node(told, "other")]
    snapshot = await suspended(*before)
    told.log.clear()
    policy = ResumeRules(default=ResumePolicy(removed=DROP), retired=before)
    with pytest.raises(OSError, match="gone") as caught:
        async with Compositor([]).enter(session_snapshot=snapshot, resume=policy):
            raise AssertionError
    assert hooks(told)[3:] == ["other.delete", "c.delete", "p.suspend"]
    left = own_snapshot_of(caught.value)
    assert states(left) == {"p": ("suspended", 1), "c": ("suspended", 2)}
    told.fails, told.log = {}, []
    async with Compositor([]).enter(session_snapshot=left, resume=policy):
        pass
    assert hooks(told) == ["p.resume", "c.resume", "c.delete", "p.delete"]


async def test_another_try_goes_the_way_of_the_first_one() -> None:
    """It was dropped because it had moved, and stands where it was found: nobody asks for a migrator now."""
    told, other = Told({"z.create": OSError("full")}), kind("other")
    snapshot = await suspended(*[node(told, name) for name in "abc"])
    moved = ResumePolicy(moved=DROP, retyped=ResumeAction.MIGRATE)
    policy = ResumeRules(layers={"a": moved, "z": ResumePolicy(added=START_NEW)}, retired=[node(told, "a")])
    compositor = Compositor([node(told, "b"), node(told, "c"), node(told, "a", other), node(told, "z")])
    first = compositor.diff(snapshot, resume=policy)
    with pytest.raises(OSError, match="full") as caught:
        async with compositor.enter(session_snapshot=snapshot, resume=policy):
            raise AssertionError
    left = own_snapshot_of(caught.value)
    assert left is not None
    assert compositor.diff(left, resume=policy).layers == first.layers
    told.fails = {}
    async with compositor.enter(session_snapshot=left, resume=policy):
        assert hooks(told).count("a.delete") == 1


class Leased(Traced):
    """What it holds outside has another name after each entry."""

    type_id = "leased"

    async def on_context_resume(self) -> None:
        await super().on_context_resume()
        self.runtime_state.count += 100


async def test_what_was_not_dropped_is_left_as_it_was_resumed() -> None:
    told = Told({"a:leased.delete": OSError("gone")})
    snapshot = await suspended(node(told, "a", Leased), node(told, "b"))
    policy = ResumeRules(default=ResumePolicy(removed=DROP), retired=[node(told, "a", Leased)])
    with pytest.raises(OSError, match="gone") as caught:
        async with Compositor([node(told, "b")]).enter(session_snapshot=snapshot, resume=policy):
            raise AssertionError
    assert states(own_snapshot_of(caught.value)) == {"b": ("suspended", 2), "a": ("suspended", 101)}


async def test_the_plain_snapshot_of_a_failed_entry_keeps_the_order_and_can_be_tried_again() -> None:
    told, other = Told({"b.delete": OSError("gone")}), kind("other")
    snapshot = await suspended(node(told, "a"), node(told, "b"), node(told, "c"))
    policy = ResumeRules(layers={"b": ResumePolicy(retyped=DROP)}, retired=[node(told, "b")])
    compositor = Compositor([node(told, "a"), node(told, "b", other), node(told, "c")])
    with pytest.raises(OSError, match="gone") as caught:
        async with compositor.enter(session_snapshot=snapshot, resume=policy):
            raise AssertionError
    plain = snapshot_of(caught.value)
    assert plain is not None
    assert [(each.name, each.lifecycle_state.value) for each in plain.layers] == [
        ("a", "suspended"),
        ("b", "suspended"),
        ("c", "suspended"),
    ]
