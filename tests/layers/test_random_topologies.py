"""Random graphs, policies and failures: what was suspended goes on, or is deleted once because a policy says so.
Nothing else ever becomes of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import event, given, note
from hypothesis import strategies as st

from dagbok.agents.layers import (
    Compositor,
    LayerNode,
    LayerProvider,
    LifecycleState,
    ResumePolicy,
    ResumeRules,
    Snapshot,
    TypeMigrator,
    own_snapshot_of,
    read_snapshot,
    snapshot_of,
)
from dagbok.agents.layers.snapshots.rules import FITTING, LayerChange
from tests.layers.changing import TracedDeps
from tests.layers.parts import Count, Told, Traced

STEPS = ("res.enter", "res.exit", "create", "resume", "suspend", "delete")
TYPES = ("k1", "k2")
NAMES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)


class Failure(Exception):
    """A failure of a test."""


class Deleting(Told):
    """Knows whose delete hooks succeeded: by name, type and the number that the layer had been given."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: Counter[tuple[str, str | None, int]] = Counter()


@dataclass(frozen=True)
class Place:
    """A node: its name, its type, and the node that it leans on."""

    name: str
    type_id: str
    on: str | None


@dataclass
class Case:
    """Two graphs, what is between them, and which steps fail."""

    before: list[Place]
    after: list[Place]
    suspended: set[str]
    policies: dict[str, ResumePolicy]
    retired: list[Place]
    converting: bool
    fails: list[str]
    cancelled: bool
    told: Deleting = field(default_factory=Deleting)

    def rules(self) -> ResumeRules:
        migrators = [TypeMigrator(old, new, dict) for old in TYPES for new in TYPES if old != new]
        retired = [made(place, self.told) for place in self.retired]
        return ResumeRules(
            layers=self.policies, retired=retired, type_migrators=migrators if self.converting else ()
        )

    def errors(self) -> dict[str, BaseException]:
        """What the steps raise: one of them perhaps a cancellation."""
        errors: dict[str, BaseException] = {step: Failure(step) for step in self.fails}
        if self.cancelled and self.fails:
            errors[self.fails[0]] = asyncio.CancelledError(self.fails[0])
        return errors

    def plan(self, places: list[Place]) -> Compositor:
        return Compositor([made(place, self.told) for place in places])


def made(place: Place, told: Deleting) -> LayerNode:
    class Recording(Traced):
        type_id = place.type_id
        deps_type = TracedDeps

        async def on_context_delete(self) -> None:
            await super().on_context_delete()
            told.deleted[place.name, place.type_id, self.runtime_state.count] += 1

    provider = LayerProvider.from_factory(layer_type=Recording, create=lambda _: Recording(place.name, told))
    return LayerNode(place.name, provider, deps={} if place.on is None else {"on": place.on})


@st.composite
def graphs(draw: st.DrawFn) -> list[Place]:
    names = draw(NAMES)
    return [
        Place(name, draw(st.sampled_from(TYPES)), draw(st.sampled_from([None, *names[:number]])))
        for number, name in enumerate(names)
    ]


@st.composite
def policies(draw: st.DrawFn) -> ResumePolicy:
    """Mostly one that goes on, so that most cases get further than a refusal."""
    chosen: dict[str, Any] = {}
    for change in LayerChange:
        fitting = FITTING[change]
        chosen[change.value] = draw(st.sampled_from([*fitting[:-1] * 3, fitting[-1]]))
    return ResumePolicy(**chosen)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    before = draw(graphs())
    kept = draw(st.permutations(before)) if draw(st.booleans()) else before
    after = [place for place in kept if draw(st.integers(0, 4)) > 0]
    after = [Place(each.name, draw(st.sampled_from([each.type_id] * 3 + [*TYPES])), None) for each in after]
    added = [each for each in draw(graphs()) if each.name not in {place.name for place in before}][:2]
    after += [Place(each.name, each.type_id, None) for each in added]
    names = [place.name for place in before]
    steps = [f"{name}.{step}" for name in {*names, *(place.name for place in after)} for step in STEPS]
    return Case(
        before=before,
        after=after,
        suspended={name for name in names if draw(st.integers(0, 5)) > 0},
        policies={name: draw(policies()) for name in "abcdef"},
        retired=[place for place in before if draw(st.integers(0, 9)) > 0],
        converting=draw(st.booleans()),
        fails=draw(st.lists(st.sampled_from(sorted(steps)), max_size=2, unique=True)) if steps else [],
        cancelled=draw(st.integers(0, 4)) == 0,
    )


async def first_run(case: Case) -> Snapshot:
    """Each layer is given a number of its own; some are suspended."""
    async with case.plan(case.before).enter() as run:
        for number, place in enumerate(case.before, 1):
            run.get_layer(place.name, Traced).runtime_state.count = number
            if place.name in case.suspended:
                run.suspend_layer_on_exit(place.name)
    assert run.snapshot is not None
    case.told.log.clear()
    case.told.deleted.clear()
    return run.snapshot


def suspended_in(snapshot: Snapshot | None) -> Counter[int]:
    """The numbers of layers that are suspended."""
    assert snapshot is not None
    assert read_snapshot(snapshot.to_json()) == snapshot
    for each in snapshot.layers:
        assert each.lifecycle is not LifecycleState.ACTIVE
        Count.model_validate(each.state)
    found = [Count.model_validate(each.state).count for each in snapshot.layers if each.lifecycle == "suspended"]
    return Counter(number for number in found if number)


def deleted_in(told: Deleting) -> Counter[int]:
    """The numbers of layers whose delete hooks succeeded."""
    return Counter({number: times for (_, _, number), times in told.deleted.items() if number})


@given(cases())
def test_what_was_suspended_goes_on_or_is_deleted_once_by_policy(case: Case) -> None:
    asyncio.run(check_resume(case))


async def check_resume(case: Case) -> None:
    snapshot = await first_run(case)
    all_of_it = suspended_in(snapshot)
    plan, rules = case.plan(case.after), case.rules()
    diff = plan.diff(snapshot, resume=rules)
    note(str(diff))
    assert case.told.log == []
    case.told.fails = case.errors()
    left: Snapshot | None = snapshot
    run = None
    try:
        async with plan.enter(session_snapshot=snapshot, resume=rules) as run:
            run.suspend_on_exit()
            entered = {place.name: run.get_layer(place.name, Traced).runtime_state.count for place in case.after}
    except BaseException as error:
        if run is None:
            left = own_snapshot_of(error)
            plain = snapshot_of(error)
            assert (left is None) == (plain is None) == bool(case.told.log == [])
    if run is not None:
        left = run.snapshot
        goes_on = Counter(number for number in entered.values() if number)
        assert goes_on + deleted_in(case.told) == all_of_it
    event("refused" if left is None else "entered" if run is not None else "failed")
    if left is None:
        assert bool(diff.refused) or not rules_are_whole(case)
        assert case.told.deleted == Counter()
        return
    assert diff.refused == ()
    dropped = {each.name for each in diff.layers if each.outcome == "drop"}
    names = {number: place.name for number, place in enumerate(case.before, 1)}
    assert {names[number] for number in deleted_in(case.told)} <= dropped
    assert suspended_in(left) + deleted_in(case.told) == all_of_it
    if run is None:
        await check_second_try(case, left, all_of_it)


async def check_second_try(case: Case, left: Snapshot, all_of_it: Counter[int]) -> None:
    case.told.fails = {}
    async with case.plan(case.after).enter(session_snapshot=left, resume=case.rules()) as run:
        run.suspend_on_exit()
    assert suspended_in(run.snapshot) + deleted_in(case.told) == all_of_it


def rules_are_whole(case: Case) -> bool:
    """Every layer that one depends on is retired with it."""
    return len(case.retired) == len(case.before)


@given(cases(), st.booleans())
def test_a_disposal_deletes_each_suspended_layer_once_however_often_it_is_tried(case: Case, plain: bool) -> None:
    asyncio.run(check_disposal(case, plain))


async def check_disposal(case: Case, plain: bool) -> None:
    snapshot = await first_run(case)
    all_of_it = suspended_in(snapshot)
    plan, left, tries = case.plan(case.before), snapshot, 0
    case.told.fails = case.errors()
    while suspended_in(left) or tries == 0:
        tries += 1
        try:
            left = await plan.dispose(left)
            assert suspended_in(left) == Counter()
        except BaseException as error:
            found = own_snapshot_of(error)
            assert found is not None
            left = found
        assert suspended_in(left) + deleted_in(case.told) == all_of_it
        opened = Counter(step.split(".")[0] for step in case.told.log if step.endswith("res.enter"))
        failed = Counter(
            step.split(".")[0] for step in case.told.log if step.endswith("res.enter") and step in case.told.fails
        )
        closed = Counter(step.split(".")[0] for step in case.told.log if step.endswith("res.exit"))
        assert closed == opened - failed
        case.told.fails, case.told.log = {}, []
    assert tries <= 2
    assert deleted_in(case.told) == all_of_it


@given(graphs(), st.data())
def test_snapshot_resume_snapshot_is_stable_in_the_own_format(places: list[Place], data: st.DataObject) -> None:
    told = Deleting()
    plan = Compositor([made(place, told) for place in places])
    counts = [data.draw(st.integers(-5, 5)) for _ in places]

    async def thrice() -> list[Snapshot]:
        async with plan.enter() as run:
            run.suspend_on_exit()
            for place, count in zip(places, counts, strict=True):
                run.get_layer(place.name, Traced).runtime_state.count = count
        found = [run.snapshot]
        for form in (Snapshot.to_json, Snapshot.to_data):
            last = found[-1]
            assert last is not None
            value: Any = form(last)
            async with plan.enter(session_snapshot=value) as run:
                run.suspend_on_exit()
            found.append(run.snapshot)
        return [each for each in found if each is not None]

    first, second, third = asyncio.run(thrice())
    assert first.layers == second.layers == third.layers
    assert (first.graph, second.parent, third.parent) == (third.graph, first.id, second.id)
