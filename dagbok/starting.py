"""The command that starts a run, made of what a person wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import get_args

from dagbok.agents.workers.definitions import Registry, Verifier, Worker
from dagbok.agents.workers.edges import warn_of_idle_conditions
from dagbok.agents.workers.encode import encode_spec
from dagbok.events import arguments
from dagbok.events.budgets import Limits, encode_limits
from dagbok.events.ids import derive
from dagbok.events.numbers import MAX_COUNT
from dagbok.events.run.commands import StartRun
from dagbok.events.run.values import FailurePolicy, Pinned, SecurityContext
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
        limits=encode_limits(Limits() if limits is None else limits),
        context=SecurityContext(user=user),
    )


def task_list(task: object) -> list[TaskSpec]:
    """One task or several as a list. Raises `InvalidInput` (`usage`) for what is no `TaskSpec`."""
    if isinstance(task, TaskSpec):
        return [task]
    if isinstance(task, str | bytes) or not isinstance(task, Iterable):
        raise arguments.wrong("a task", task, "give a TaskSpec, or several in a list")
    return [arguments.typed("a task", each, TaskSpec) for each in task]


def check_pinned(
    failure_policy: FailurePolicy | None, max_depth: int | None, max_decompositions: int | None
) -> None:
    """Raises `InvalidInput` (`usage`) for what is of another type; which numbers may be is decided with the run."""
    if failure_policy is not None:
        arguments.one_of("failure_policy", failure_policy, get_args(FailurePolicy))
    for name, value in (("max_depth", max_depth), ("max_decompositions", max_decompositions)):
        if value is not None:
            arguments.whole(name, value, least=-MAX_COUNT)


def check_start(failure_policy: FailurePolicy, max_depth: int, max_decompositions: int) -> None:
    """`check_pinned` for a run that begins, which has to have them all."""
    for name, value in (("max_depth", max_depth), ("max_decompositions", max_decompositions)):
        arguments.typed(name, value, int)
    arguments.one_of("failure_policy", failure_policy, get_args(FailurePolicy))
    check_pinned(failure_policy, max_depth, max_decompositions)


def check_member(pool: str, user: str, serve: bool, snapshot_bytes: int) -> None:
    """Raises `InvalidInput` (`usage`) for what no process of a log can be."""
    if not arguments.text("pool", pool).strip():
        raise arguments.wrong("pool", pool, "give a name, or leave it out")
    arguments.text("user", user)
    arguments.typed("serve", serve, bool)
    arguments.whole("snapshot_bytes", snapshot_bytes, least=1)


def registry_of(definitions: Sequence[Worker | Verifier | ModuleType]) -> Registry:
    """The workers and verifiers that a program names, or that its modules have. Raises what `Registry.add` raises."""
    registry = Registry()
    for definition in definitions:
        if isinstance(definition, ModuleType):
            registry.add_from(definition)
        else:
            registry.add(definition)
    return registry
