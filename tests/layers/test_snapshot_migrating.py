"""A state that was written by an earlier class: it is migrated step by step, or refused with what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from dagbok.agents.layers import (
    Compositor,
    LayerChange,
    LayerOutcome,
    NoMigrator,
    ResumeAction,
    ResumePolicy,
    ResumeRules,
    Snapshot,
)
from tests.layers.changing import hooks, kind, node, states, suspended
from tests.layers.parts import Told


def plus(number: int) -> Any:
    return lambda state: {"count": state["count"] + number}


async def old() -> Snapshot:
    return await suspended(node(Told(), "a", kind("k", 1)))


async def test_migrators_of_the_class_are_applied_in_order() -> None:
    told, snapshot = Told(), await old()
    plan = Compositor([node(told, "a", kind("k", 3, {1: plus(10), 2: plus(100)}))])
    (layer,) = plan.diff(snapshot).layers
    assert (layer.outcome, layer.changes) == (LayerOutcome.MIGRATE, (LayerChange.OUTDATED,))
    assert str(plan.diff(snapshot)).startswith(
        "~ a  k  goes on, migrated: a has version 3 of its state, had 1"
    )
    async with plan.enter(session_snapshot=snapshot) as run:
        run.suspend_on_exit()
    assert states(run.snapshot) == {"a": ("suspended", 111)}
    assert run.snapshot is not None
    assert run.snapshot.layers[0].state_version == 3
    assert snapshot.layers[0].state == {"count": 1}, "what was given is not changed"


async def test_migrators_of_the_rules_go_before_those_of_the_class() -> None:
    plan = Compositor([node(Told(), "a", kind("k", 3, {1: plus(10)}))])
    rules = ResumeRules(migrators={"k": {1: plus(20), 2: plus(200)}})
    async with plan.enter(session_snapshot=await old(), resume=rules) as run:
        run.suspend_on_exit()
    assert states(run.snapshot) == {"a": ("suspended", 221)}


async def test_a_missing_step_says_which_layer_from_what_to_what_and_what_to_do() -> None:
    said = (
        "Layer 'a': its state is of version 1 of k, 3 is read here, and no migrator leads from version 2 to 3 of k. "
        "Declare state_migrators[2] on its class, or give ResumeRules(migrators={'k': {2: …}})"
    )
    told = Told()
    plan = Compositor([node(told, "a", kind("k", 3, {1: plus(10)}))])
    snapshot = await old()
    with pytest.raises(NoMigrator, match=re.escape(said)) as caught:
        async with plan.enter(session_snapshot=snapshot):
            pass
    assert caught.value.layer == "a"
    assert told.log == []
    assert plan.diff(snapshot).refused[0].why == str(caught.value)


async def test_a_state_of_a_later_version_is_refused() -> None:
    snapshot = await suspended(node(Told(), "a", kind("k", 5)))
    with pytest.raises(NoMigrator, match="version 5 of k, and this program reads version 2"):
        async with Compositor([node(Told(), "a", kind("k", 2))]).enter(session_snapshot=snapshot):
            pass


async def test_an_outdated_layer_may_be_refused_or_dropped_with_its_old_class() -> None:
    told, snapshot = Told(), await old()
    new, was = kind("k", 2, {1: plus(1)}), kind("k", 1)
    plan = Compositor([node(told, "a", new)])
    strict = ResumeRules(default=ResumePolicy(outdated=ResumeAction.REFUSE))
    with pytest.raises(ValueError, match="a has version 2 of its state, had 1"):
        async with plan.enter(session_snapshot=snapshot, resume=strict):
            pass
    drops = ResumeRules(default=ResumePolicy(outdated=ResumeAction.DROP), retired=[node(told, "a", was)])
    async with plan.enter(session_snapshot=snapshot, resume=drops) as run:
        run.suspend_on_exit()
    assert states(run.snapshot) == {"a": ("suspended", 0)}
    assert hooks(told).count("a:k.delete") == 1


async def test_what_a_migrator_gives_is_validated_and_what_it_raises_names_it() -> None:
    snapshot = await old()
    for migrate, error, note in (
        (lambda state: {"count": "?"}, ValidationError, "in the state of layer 'a'"),
        (lambda state: {"count": state["no"]}, KeyError, "in the migrator from version 1 to 2 of k, of layer 'a'"),
        (lambda state: None, TypeError, "in the migrator from version 1 to 2 of k, of layer 'a'"),
    ):
        broken: Any = migrate
        plan = Compositor([node(Told(), "a", kind("k", 2, {1: broken}))])
        with pytest.raises(error) as caught:
            async with plan.enter(session_snapshot=snapshot):
                pass
        assert caught.value.__notes__ == [note]
        assert note in plan.diff(snapshot).refused[0].why


async def test_a_migrator_that_changes_what_it_is_handed_changes_a_copy() -> None:
    def in_place(state: Any) -> Any:
        state["count"] += 1
        return state

    snapshot = await old()
    plan = Compositor([node(Told(), "a", kind("k", 2, {1: in_place}))])
    plan.diff(snapshot)
    plan.diff(snapshot)
    async with plan.enter(session_snapshot=snapshot) as run:
        run.suspend_on_exit()
    assert states(run.snapshot) == {"a": ("suspended", 2)}
