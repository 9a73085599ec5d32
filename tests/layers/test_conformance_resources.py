"""Resources and failures of a parent P and a child C: the order of all steps, and which error is raised."""

from __future__ import annotations

import asyncio

import pytest

from dagbok.agents.layers import Compositor, CompositorRun, other_errors, snapshot_of
from tests.layers.parts import Told, traced

ENTERED = ["P.res.enter", "P.create", "C.res.enter", "C.create"]
LEFT = ["C.delete", "C.res.exit", "P.delete", "P.res.exit"]


class Oops(Exception):
    """A failure of a test."""


async def run_both(told: Told, body: BaseException | None = None, suspend: bool = False) -> CompositorRun:
    async with Compositor(traced(told, "P", "C")).enter() as run:
        if suspend:
            run.suspend_on_exit()
        told.log.append("body")
        if body is not None:
            raise body
    return run


async def test_a_normal_run() -> None:
    told = Told()
    await run_both(told)
    assert told.log == [*ENTERED, "body", *LEFT]


@pytest.mark.parametrize("error", [Oops("body"), asyncio.CancelledError("body"), KeyboardInterrupt("body")])
async def test_a_body_that_raises_or_is_cancelled(error: BaseException) -> None:
    told = Told()
    with pytest.raises(type(error)) as caught:
        await run_both(told, error)
    assert caught.value is error
    assert told.log == [*ENTERED, "body", *LEFT]
    assert told.seen == {"P": error, "C": error}


async def test_suspend_then_resume() -> None:
    told = Told()
    compositor = Compositor(traced(told, "a"))
    async with compositor.enter() as run:
        run.suspend_on_exit()
    async with compositor.enter(session_snapshot=run.session_snapshot):
        pass
    first, second = ["a.res.enter", "a.create", "a.suspend", "a.res.exit"], ["a.res.enter", "a.resume"]
    assert told.log == [*first, *second, "a.delete", "a.res.exit"]


async def test_a_create_hook_that_raises() -> None:
    told = Told({"C.create": Oops("create")})
    with pytest.raises(Oops, match="create") as caught:
        await run_both(told)
    assert told.log == [*ENTERED, "C.res.exit", "P.delete", "P.res.exit"]
    snapshot = snapshot_of(caught.value)
    assert snapshot is not None
    assert [each.lifecycle_state for each in snapshot.layers] == ["closed", "new"]


async def test_defect_3_a_suspend_hook_that_raises_marks_its_slot() -> None:
    failure = Oops("suspend")
    told = Told({"C.suspend": failure})
    run = None
    with pytest.raises(Oops):
        async with Compositor(traced(told, "P", "C")).enter() as run:
            run.suspend_on_exit()
    assert run is not None
    assert told.log == [*ENTERED, "C.suspend", "C.res.exit", "P.suspend", "P.res.exit"]
    assert (run.slots["C"].uncleanly_suspended, run.slots["C"].exit_error) == (True, failure)
    assert not run.slots["P"].uncleanly_suspended


@pytest.mark.parametrize(
    ("fails", "steps"),
    [
        ("a.create", ["a.res.enter", "a.create", "a.res.exit"]),
        ("a.delete", ["a.res.enter", "a.create", "a.delete", "a.res.exit"]),
        ("a.res.enter", ["a.res.enter"]),
        ("a.res.exit", ["a.res.enter", "a.create", "a.delete", "a.res.exit"]),
    ],
)
async def test_a_single_layer_that_fails(fails: str, steps: list[str]) -> None:
    told = Told({fails: Oops(fails)})
    with pytest.raises(Oops, match=fails):
        async with Compositor(traced(told, "a")).enter():
            pass
    assert told.log == steps


async def test_a_failed_resume_leaves_earlier_layers_suspended() -> None:
    told = Told()
    compositor = Compositor(traced(told, "P", "C"))
    async with compositor.enter() as run:
        run.suspend_on_exit()
    told.log.clear()
    told.fails["C.resume"] = Oops("resume")
    with pytest.raises(Oops) as caught:
        async with compositor.enter(session_snapshot=run.session_snapshot):
            pass
    assert told.log[-3:] == ["C.res.exit", "P.suspend", "P.res.exit"]
    assert snapshot_of(caught.value) == run.session_snapshot
    told.fails.clear()
    async with compositor.enter(session_snapshot=snapshot_of(caught.value)):
        pass


async def test_defect_2_body_and_two_exit_errors_are_all_told_the_bodys_first() -> None:
    body, delete, close = Oops("body"), Oops("delete"), Oops("close")
    told = Told({"C.delete": delete, "P.res.exit": close})
    with pytest.raises(ExceptionGroup) as caught:
        await run_both(told, body)
    assert caught.value.exceptions == (body, delete, close)


async def test_a_cancellation_stays_itself_and_carries_the_others() -> None:
    body, delete = asyncio.CancelledError(), Oops("delete")
    with pytest.raises(asyncio.CancelledError) as caught:
        await run_both(Told({"C.delete": delete}), body)
    assert caught.value is body
    assert other_errors(body) == (delete,)
    assert body.__notes__ == ["Also, when layers were left: Oops: delete"]


async def test_defect_1_a_failed_entry_and_its_cleanup_are_both_told_with_the_snapshot() -> None:
    create, delete = Oops("create"), Oops("delete")
    with pytest.raises(ExceptionGroup) as caught:
        await run_both(Told({"C.create": create, "P.delete": delete}))
    assert caught.value.exceptions == (create, delete)
    assert snapshot_of(caught.value) is not None


async def test_a_second_cancellation_does_not_cut_the_cleanup() -> None:
    told = Told()
    gate, closing = asyncio.Event(), asyncio.Event()
    tell = told.tell

    async def slow(step: str) -> None:
        if step == "C.delete":
            closing.set()
            await gate.wait()
        await tell(step)

    told.tell = slow  # type: ignore[method-assign]
    entered = asyncio.Event()

    async def work() -> None:
        async with Compositor(traced(told, "P", "C")).enter():
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    await closing.wait()
    task.cancel()
    await asyncio.sleep(0)
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told.log == [*ENTERED, *LEFT]


async def test_cleanup_after_a_cancellation_has_a_time_limit() -> None:
    told = Told(waits={"C.delete"})
    with pytest.raises(asyncio.CancelledError) as caught:
        async with Compositor(traced(told, "P", "C"), cleanup_timeout_s=0.01).enter():
            raise asyncio.CancelledError
    (late,) = other_errors(caught.value)
    assert isinstance(late, TimeoutError)
    assert "delete hook of layer 'C'" in str(late)
    assert told.log == [*ENTERED, *LEFT]


async def test_an_entry_that_is_cancelled_leaves_what_it_had_entered() -> None:
    told = Told({"P.delete": Oops("delete")}, waits={"C.create"})
    task = asyncio.create_task(run_both(told))
    await told.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert told.log == [*ENTERED, "C.res.exit", "P.delete", "P.res.exit"]
    assert [str(each) for each in other_errors(caught.value)] == ["delete"]


async def test_a_cancellation_while_an_unhurt_run_is_left() -> None:
    told = Told(waits={"P.suspend"})
    compositor = Compositor(traced(told, "P"), cleanup_timeout_s=0.01)

    async def work() -> None:
        async with compositor.enter() as run:
            run.suspend_on_exit()

    task = asyncio.create_task(work())
    await told.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert [type(each) for each in other_errors(caught.value)] == [TimeoutError]
