"""Random graphs with random failures: resources are closed in reverse order exactly once, and states stay valid."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dagbok.agents.layers import Compositor, CompositorRun, CompositorSessionSnapshot, LifecycleState, snapshot_of
from tests.layers.parts import Count, Told, Traced, traced

STEPS = ("res.enter", "res.exit", "create", "resume", "suspend", "delete")
SIZES = st.integers(0, 6)


class Failure(Exception):
    """A failure of a test."""


@st.composite
def failing(draw: st.DrawFn) -> tuple[list[str], dict[str, BaseException], bool]:
    names = [f"n{number}" for number in range(draw(SIZES))]
    steps = [f"{name}.{step}" for name in names for step in STEPS]
    failed = draw(st.lists(st.sampled_from(steps), max_size=3, unique=True)) if steps else []
    cancelled = draw(st.booleans())
    errors: dict[str, BaseException] = {each: Failure(each) for each in failed}
    if cancelled and failed:
        errors[failed[0]] = asyncio.CancelledError(failed[0])
    return names, errors, draw(st.booleans())


async def once(
    compositor: Compositor, suspend: bool, snapshot: CompositorSessionSnapshot | None, raising: bool
) -> tuple[CompositorRun | None, BaseException | None]:
    run = None
    try:
        async with compositor.enter(session_snapshot=snapshot) as run:
            if suspend:
                run.suspend_on_exit()
            for slot in run.slots.values():
                state: Any = slot.layer.runtime_state
                state.count += 1
            if raising:
                raise Failure("body")
    except BaseException as error:
        return run, error
    return run, None


def closed_as_opened(told: Told) -> bool:
    failed = {each.split(".")[0] for each in told.fails if each.endswith("res.enter")}
    opened = [each.split(".")[0] for each in told.log if each.endswith("res.enter")]
    closed = [each.split(".")[0] for each in told.log if each.endswith("res.exit")]
    return closed == [each for each in reversed(opened) if each not in failed]


@given(failing(), st.booleans())
def test_what_was_opened_is_closed_in_reverse_order_exactly_once(
    case: tuple[list[str], dict[str, BaseException], bool], raising: bool
) -> None:
    names, errors, suspend = case
    told = Told(errors)
    run, error = asyncio.run(once(Compositor(traced(told, *names)), suspend, None, raising))
    assert closed_as_opened(told)
    happened = [errors[each] for each in told.log if each in errors]
    if happened or (raising and run is not None):
        assert error is not None
    if any(isinstance(each, asyncio.CancelledError) for each in happened):
        assert isinstance(error, asyncio.CancelledError)
    snapshot = run.session_snapshot if run is not None else snapshot_of(error) if error is not None else None
    assert snapshot is not None
    for each in snapshot.layers:
        assert each.lifecycle_state is not LifecycleState.ACTIVE
        Count.model_validate(each.runtime_state)


@given(failing())
def test_a_failed_resume_can_be_tried_again(case: tuple[list[str], dict[str, BaseException], bool]) -> None:
    names, errors, _ = case
    told = Told()
    compositor = Compositor(traced(told, *names))
    first, _ = asyncio.run(once(compositor, True, None, False))
    assert first is not None
    told.fails, told.log = {key: each for key, each in errors.items() if key.endswith("resume")}, []
    run, error = asyncio.run(once(compositor, True, first.session_snapshot, False))
    if error is None:
        return
    assert run is None
    assert snapshot_of(error) == first.session_snapshot
    assert closed_as_opened(told)
    told.fails = {}
    again, error = asyncio.run(once(compositor, True, snapshot_of(error), False))
    assert (again is not None, error) == (True, None)


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
