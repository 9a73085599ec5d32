"""Conditions that decide nothing. One edge that is taken is enough for a task to run unless it asks for all of them
(ADRs 0008 and 0022), so beside a plain edge to a task that surely runs, a condition keeps nothing from running; whoever
comes from a scheduler where all edges count expects that it does. It is a hint, not a refusal: the graph is valid, and
old logs have such graphs."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from dagbok.events.run.values import Spec

logger = structlog.get_logger(__name__)

MOST_NAMED: Final = 5
_WHY: Final = 'one edge that is taken is enough: give the task join="all", or drop the plain edge'


def warn_of_idle_conditions(specs: Sequence[Spec], **ids: str) -> None:
    """Log one warning when conditions of these tasks decide nothing, with up to five of them; `ids` stand in it."""
    idle = idle_conditions(specs)
    if idle:
        tasks = [f"{task} (runs after {plain} anyway)" for task, plain in list(idle.items())[:MOST_NAMED]]
        logger.warning("conditions.decide_nothing", **ids, number=len(idle), tasks=", ".join(tasks), why=_WHY)


def idle_conditions(specs: Sequence[Spec]) -> Mapping[str, str]:
    """Tasks with conditions that run whatever those say, each with a dependency that has none and surely runs: no
    condition leads to it, unless beside such an edge. Of tasks that are not among `specs` nothing is known."""
    if not any(spec.when for spec in specs):
        return {}
    plain = {spec.id: set(spec.depends_on) - {condition.task for condition in spec.when} for spec in specs}
    dependents: dict[str, list[Spec]] = {}
    for spec in specs:
        for dep in plain[spec.id]:
            dependents.setdefault(dep, []).append(spec)
    certain = {spec.id for spec in specs if not spec.depends_on}
    idle: dict[str, str] = {}
    to_do = deque(spec.id for spec in specs if spec.id in certain)
    while to_do:
        sure = to_do.popleft()
        for spec in dependents.get(sure, ()):
            if spec.id in certain or spec.join == "all":
                continue
            certain.add(spec.id)
            to_do.append(spec.id)
            if spec.when:
                idle[spec.id] = sure
    return idle
