"""The command that starts a run, made of what a person wrote."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.workers.edges import warn_of_idle_conditions
from dagbok.agents.workers.encode import encode_spec
from dagbok.events.budgets import Limits, encode_limits
from dagbok.events.ids import derive
from dagbok.events.run.commands import StartRun
from dagbok.events.run.values import Pinned, SecurityContext
from dagbok.events.specs import TaskSpec


def start_command(
    run: str, tasks: Sequence[TaskSpec], pinned: Pinned, *, pool: str, user: str, limits: Limits | None = None
) -> StartRun:
    """Those that no other task depends on are the roots. Ids of tasks that have none derive from that of the run; tasks
    that name no pool go to `pool`. Conditions that decide nothing are warned of. Raises `InvalidInput` for a
    specification that cannot be written."""
    specs = [encode_spec(task, derived_id=derive(run, index), pool=pool) for index, task in enumerate(tasks)]
    warn_of_idle_conditions(specs, run=run)
    needed = {dependency for spec in specs for dependency in spec.depends_on}
    return StartRun(
        tasks=tuple(specs),
        roots=tuple(spec.id for spec in specs if spec.id not in needed),
        pinned=pinned,
        limits=encode_limits(limits or Limits()),
        context=SecurityContext(user=user),
    )
