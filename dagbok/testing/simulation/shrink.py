"""Shortens a history that fails: fewer faults, processes that vanish, acts of clients, runs and tasks, as long as the
same check fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from dagbok.events.run.values import Spec
from dagbok.testing.simulation.plan import Plan, RunPlan
from dagbok.testing.simulation.schedule import Ending

TRIES = 150


class Part(NamedTuple):
    """Something that a plan can do without: what kind, of which run if any, and its number or name."""

    kind: str
    run: str
    which: int | str


Try = Callable[[Plan], Ending]


def shortened(plan: Plan, ending: Ending, attempt: Try, tries: int = TRIES) -> Plan:
    """The smallest plan that was found to fail in the same check, by leaving out ever smaller shares of its parts."""
    return _Shortening(plan, ending, attempt, tries).result()


class _Shortening:
    def __init__(self, plan: Plan, ending: Ending, attempt: Try, tries: int) -> None:
        self._plan, self._attempt, self._tries = plan, attempt, tries
        self._check = ending.violated[0] if ending.violated else ""
        self._parts = parts_of(plan, ending)

    def result(self) -> Plan:
        best = self._plan
        for simpler in _simpler(best):
            best = simpler if self._fails(simpler) else best
        kept, share = list(self._parts), 2
        while kept and self._tries > 0:
            size = max(1, len(kept) // share)
            shorter = self._without_a_share(best, kept, size)
            if shorter is not None:
                kept = shorter
            elif size == 1:
                break
            else:
                share *= 2
        return without(best, set(self._parts) - set(kept))

    def _without_a_share(self, best: Plan, kept: list[Part], size: int) -> list[Part] | None:
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            if self._fails(without(best, set(self._parts) - set(rest))):
                return rest
        return None

    def _fails(self, plan: Plan | None) -> bool:
        if plan is None or self._tries <= 0:
            return False
        self._tries -= 1
        violated = self._attempt(plan).violated
        return violated is not None and violated[0] == self._check


def parts_of(plan: Plan, ending: Ending) -> list[Part]:
    """Everything that may be left out, the largest parts first."""
    parts = [Part("run", run.name, "") for run in plan.runs[1:]]
    parts += [Part("fault", "", number) for number, _ in ending.injected]
    parts += [Part("incident", "", number) for number in range(len(plan.incidents))]
    for run in plan.runs:
        parts += [Part("act", run.name, number) for number in range(len(run.acts_at_s))]
        parts += [Part("task", run.name, spec.id) for spec in run.start.tasks[1:]]
    return parts


def without(plan: Plan, parts: set[Part]) -> Plan:
    """The plan that lacks these parts."""
    faults = frozenset(part.which for part in parts if part.kind == "fault" and isinstance(part.which, int))
    return msgspec.structs.replace(
        plan,
        muted=plan.muted | faults,
        incidents=tuple(
            incident for number, incident in enumerate(plan.incidents) if Part("incident", "", number) not in parts
        ),
        runs=tuple(_run_without(run, parts) for run in plan.runs if Part("run", run.name, "") not in parts),
    )


def _run_without(run: RunPlan, parts: set[Part]) -> RunPlan:
    gone = {part.which for part in parts if part.kind == "task" and part.run == run.name}
    start = run.start
    if gone:
        tasks = tuple(_spec_without(spec, gone) for spec in start.tasks if spec.id not in gone)
        needed = {dep for spec in tasks for dep in spec.depends_on}
        start = msgspec.structs.replace(
            start, tasks=tasks, roots=tuple(spec.id for spec in tasks if spec.id not in needed)
        )
    acts = tuple(at_s for number, at_s in enumerate(run.acts_at_s) if Part("act", run.name, number) not in parts)
    return msgspec.structs.replace(run, start=start, acts_at_s=acts)


def _spec_without(spec: Spec, gone: set[int | str]) -> Spec:
    return msgspec.structs.replace(
        spec,
        depends_on=tuple(dep for dep in spec.depends_on if dep not in gone),
        when=tuple(condition for condition in spec.when if condition.task not in gone),
    )


def _simpler(plan: Plan) -> Sequence[Plan]:
    """The same with one setting at rest."""
    return [
        msgspec.structs.replace(plan, network=0.0),
        msgspec.structs.replace(plan, network=0.0, incidents=(), workers=1),
        msgspec.structs.replace(plan, snapshot_bytes=10**9, cold_after_ms=10**9),
        msgspec.structs.replace(plan, workers=1),
    ]
