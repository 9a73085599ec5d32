"""Random graphs with random failures: resources are closed in reverse order exactly once, hooks are matched, all that
went wrong is told, and states stay valid."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.agents.layers import Compositor, CompositorSessionSnapshot, LifecycleState
from tests.layers.parts import Count, Told, Traced, traced
from tests.layers.random_graphs import Case, Ended, Idle, all_of, cases, ended
from tests.support.scale import scale

SIZES = st.integers(0, 6)
examples = settings(max_examples=scale(150, 1_500), deadline=None)


def steps_of(case: Case, name: str) -> list[str]:
    return [each.removeprefix(f"{name}.") for each in case.told.log if each.startswith(f"{name}.")]


def broke(case: Case, step: str) -> bool:
    """The step was begun and did not come to its end."""
    return step in case.told.log and (step in case.fails or step == case.waits)


def is_entered(case: Case, name: str) -> bool:
    enter = "resume" if case.resumed else "create"
    return enter in steps_of(case, name) and not broke(case, f"{name}.{enter}")


def left_with(case: Case, how: Ended, name: str) -> str:
    """The hook with which a layer that was entered has to be left."""
    wanted = name in case.suspended if how.run is not None else case.resumed
    return "suspend" if wanted else "delete"


@examples
@given(cases())
def test_every_layer_has_its_hooks_and_its_resource_once_and_in_order(case: Case) -> None:
    how = asyncio.run(ended(case))
    for name in (name for name, kind in case.kinds.items() if kind is not Idle):
        expected = ["res.enter", "resume" if case.resumed else "create"]
        steps = steps_of(case, name)
        if broke(case, f"{name}.res.enter"):
            expected = expected[:1]
        elif is_entered(case, name):
            expected += [left_with(case, how, name), "res.exit"]
        else:
            expected += ["res.exit"]
        assert steps in ([], expected)
    assert how.run is None or all(case.kinds[name] is Idle or steps_of(case, name) for name in case.kinds)


@examples
@given(cases())
def test_layers_are_entered_in_the_order_of_the_graph_and_left_in_reverse(case: Case) -> None:
    asyncio.run(ended(case))
    told = [each.split(".", 1) for each in case.told.log if each != "body"]
    opened = [name for name, step in told if step == "res.enter"]
    closed = [name for name, step in told if step == "res.exit"]
    assert opened == [name for name in case.kinds if name in opened]
    assert closed == [name for name in reversed(opened) if not broke(case, f"{name}.res.enter")]
    for name, targets in case.deps.items():
        for target in targets.values():
            if name in opened:
                assert case.told.log.index(f"{target}.res.enter") < case.told.log.index(f"{name}.res.enter")
            if name in closed:
                assert case.told.log.index(f"{name}.res.exit") < case.told.log.index(f"{target}.res.exit")


@examples
@given(cases())
def test_layers_get_the_layers_of_their_own_run(case: Case) -> None:
    how = asyncio.run(ended(case))
    if how.run is None:
        return
    for name, targets in case.deps.items():
        deps = getattr(how.run.get_layer(name), "deps")  # noqa: B009 (of whichever class)
        for slot in ("first", "second", "third") if targets else ():
            target = targets.get(slot)
            assert getattr(deps, slot) is (how.run.get_layer(target) if target else None)


@examples
@given(cases())
def test_all_that_went_wrong_is_told(case: Case) -> None:
    how = asyncio.run(ended(case))
    happened = [case.fails[each] for each in case.told.log if each in case.fails and each != case.waits]
    told = list(all_of(how.error))
    assert [each for each in happened if not any(each is found for found in told)] == []
    if case.waits in case.told.log:
        assert isinstance(how.error, asyncio.CancelledError)
    elif len(happened) == 1 and not case.spoilt:
        assert how.error is happened[0]
    elif not happened and (not case.spoilt or how.run is None):
        assert how.error is None


@examples
@given(cases())
def test_what_is_left_is_valid_whatever_happened(case: Case) -> None:
    """And a spoilt state fails alone: its layer keeps the last valid one, the others what they have."""
    how = asyncio.run(ended(case))
    for name, each in zip(case.kinds, how.snapshot.layers, strict=True):
        assert each.name == name
        if how.run is not None:
            expected = 0 if name in case.spoilt else 7
            wanted = LifecycleState.SUSPENDED if name in case.suspended else LifecycleState.CLOSED
        else:
            expected = 0
            new = LifecycleState.SUSPENDED if case.resumed else LifecycleState.NEW
            is_left = case.kinds[name] is not Idle and is_entered(case, name) and not case.resumed
            wanted = LifecycleState.CLOSED if is_left or _idle_and_entered(case, name) else new
        assert Count.model_validate(each.runtime_state).count == expected
        assert each.lifecycle_state is wanted


def _idle_and_entered(case: Case, name: str) -> bool:
    """A layer without hooks was entered when one behind it was, or tried to be; it is deleted if it was new."""
    names = list(case.kinds)
    behind = names[names.index(name) + 1 :]
    return case.kinds[name] is Idle and not case.resumed and any(steps_of(case, each) for each in behind)


@examples
@given(cases())
def test_a_failed_resume_can_be_tried_again(case: Case) -> None:
    case.resumed = True
    how = asyncio.run(ended(case))
    if how.run is not None:
        return
    assert how.snapshot == how.before
    case.told.fails, case.told.waits = {}, set()

    async def again() -> None:
        async with case.compositor().enter(session_snapshot=how.snapshot):
            pass

    asyncio.run(again())


@given(SIZES)
def test_snapshot_resume_snapshot_is_stable(size: int) -> None:
    names = [f"n{number}" for number in range(size)]
    compositor = Compositor(traced(Told(), *names))

    async def twice() -> tuple[CompositorSessionSnapshot | None, CompositorSessionSnapshot | None]:
        async with compositor.enter() as one:
            one.suspend_on_exit()
            for number, name in enumerate(names):
                one.get_layer(name, Traced).runtime_state.count = number
        async with compositor.enter(session_snapshot=one.session_snapshot) as two:
            two.suspend_on_exit()
        return one.session_snapshot, two.session_snapshot

    first, second = asyncio.run(twice())
    assert first == second


