"""Random graphs of layers, with what goes wrong in one run of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import strategies as st

from dagbok.agents.layers import (
    Compositor,
    CompositorRun,
    CompositorSessionSnapshot,
    LayerConfig,
    LayerDeps,
    LayerNode,
    LayerProvider,
    NoLayerDeps,
    PlainLayer,
    other_errors,
    snapshot_of,
)
from tests.layers.parts import Count, Told, Traced

STEPS = ("res.enter", "create", "resume", "suspend", "delete", "res.exit")
SLOTS = ("first", "second", "third")


class Failure(Exception):
    """A failure of a test."""


class LinkedDeps(LayerDeps):
    first: Traced
    second: Traced | None
    third: Traced | None


class Linked(Traced):
    """Tells its hooks like `Traced`, and depends on one to three layers."""

    deps_type = LinkedDeps


class Idle(PlainLayer[NoLayerDeps, LayerConfig, Count]):
    """Without hooks and resources."""

    config_type = LayerConfig


@dataclass
class Case:
    """A graph (kinds by name, targets by name and slot), how its run is entered and left, and what goes wrong."""

    kinds: dict[str, type[Traced | Idle]]
    deps: dict[str, dict[str, str]]
    resumed: bool
    suspended: set[str]
    fails: dict[str, BaseException]
    spoilt: set[str]
    waits: str | None
    cancelled_twice: bool
    told: Told = field(default_factory=Told)

    def compositor(self) -> Compositor:
        """Its graph; cleaning up is cut soon."""
        nodes = [LayerNode(name, self._provider(name), deps=self.deps[name]) for name in self.kinds]
        return Compositor(nodes, cleanup_timeout_s=0.005)

    def _provider(self, name: str) -> LayerProvider[Traced] | LayerProvider[Idle]:
        kind = self.kinds[name]
        if issubclass(kind, Idle):
            return LayerProvider.from_layer_type(kind)
        return LayerProvider.from_factory(layer_type=kind, create=lambda _: kind(name, self.told))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to four layers; up to six failures, at most one step that waits until it is cut by a cancellation."""
    kinds: dict[str, type[Traced | Idle]] = {}
    deps: dict[str, dict[str, str]] = {}
    for number in range(draw(st.integers(0, 4))):
        traced = [name for name, kind in kinds.items() if issubclass(kind, Traced)]
        name = f"n{number}"
        kinds[name] = draw(st.sampled_from((Traced, Idle, *((Linked, Linked) if traced else ()))))
        slots = SLOTS[: draw(st.integers(1, 3))] if kinds[name] is Linked else ()
        deps[name] = {slot: draw(st.sampled_from(traced)) for slot in slots}
    names = list(kinds)
    steps = ["body", *(f"{name}.{step}" for name in names if kinds[name] is not Idle for step in STEPS)]
    failing = draw(st.lists(st.sampled_from(steps), max_size=6, unique=True))
    fails: dict[str, BaseException] = {each: Failure(each) for each in failing}
    some = st.sets(st.sampled_from(names)) if names else st.just(set[str]())
    return Case(
        kinds,
        deps,
        resumed=draw(st.booleans()),
        suspended=draw(some),
        fails=fails,
        spoilt=draw(some),
        waits=draw(st.none() | st.sampled_from(steps)),
        cancelled_twice=draw(st.booleans()),
    )


@dataclass
class Ended:
    """How a run ended: nothing of `run` where no caller saw one."""

    run: CompositorRun | None
    error: BaseException | None
    before: CompositorSessionSnapshot | None

    @property
    def snapshot(self) -> CompositorSessionSnapshot:
        """What it left, wherever that is found."""
        found = self.run.session_snapshot if self.run is not None else snapshot_of(self.error or Failure())
        assert found is not None
        return found


async def ended(case: Case) -> Ended:
    """The run of a case, cancelled where it waits. A run that is resumed had a whole one before it."""
    compositor, before = case.compositor(), None
    if case.resumed:
        async with compositor.enter() as first:
            first.suspend_on_exit()
        before = first.session_snapshot
    case.told.log, case.told.fails = [], case.fails
    case.told.waits = {case.waits} if case.waits is not None else set()
    seen: list[CompositorRun] = []
    running = asyncio.ensure_future(_once(compositor, case, before, seen))
    reached = asyncio.ensure_future(case.told.reached.wait())
    await asyncio.wait({running, reached}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        running.cancel()
        await asyncio.sleep(0)
        if case.cancelled_twice:
            running.cancel()
        await asyncio.wait({running})
    reached.cancel()
    error = asyncio.CancelledError() if running.cancelled() else running.exception()
    if running.cancelled():
        try:
            await running
        except asyncio.CancelledError as cancelled:
            error = cancelled
    assert {each for each in asyncio.all_tasks() if "layers" in each.get_name()} == set(), "no task is left behind"
    return Ended(next(iter(seen), None), error, before)


async def _once(
    compositor: Compositor, case: Case, before: CompositorSessionSnapshot | None, seen: list[CompositorRun]
) -> None:
    async with compositor.enter(session_snapshot=before) as run:
        seen.append(run)
        for name, slot in run.slots.items():
            intend = run.suspend_layer_on_exit if name in case.suspended else run.delete_layer_on_exit
            intend(name)
            object.__setattr__(slot.layer.runtime_state, "__dict__", {"count": "?" if name in case.spoilt else 7})
        await case.told.tell("body")


def all_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and all that are in it or attached to it."""
    if error is None:
        return
    yield error
    for each in error.exceptions if isinstance(error, BaseExceptionGroup) else other_errors(error):
        yield from all_of(each)
