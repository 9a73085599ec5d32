"""`simulate`: many schedules, and the shortened history of the first that fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from types import ModuleType

import msgspec

from dagbok.agents.workers.definitions import Verifier, Worker
from dagbok.events import arguments
from dagbok.events.budgets import Limits, encode_limits
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run import values
from dagbok.events.run.values import FailurePolicy
from dagbok.events.specs import TaskSpec
from dagbok.starting import check_start, registry_of, task_list
from dagbok.testing.simulation.faults import Faults
from dagbok.testing.simulation.given import Check, GivenWorkload
from dagbok.testing.simulation.history import shown
from dagbok.testing.simulation.named import check_named
from dagbok.testing.simulation.plan import Plan, Workload, plan_of
from dagbok.testing.simulation.schedule import Ending, live_through
from dagbok.testing.simulation.shrink import parts_of, shortened


class Simulated(msgspec.Struct, kw_only=True):
    """What all schedules together had: `runs` by status, `faults` on the way by kind, processes that `vanished`,
    `commands` in all logs, and virtual seconds."""

    schedules: int = 0
    commands: int = 0
    vanished: int = 0
    virtual_s: float = 0.0
    runs: Counter[str] = msgspec.field(default_factory=Counter)
    faults: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, ending: Ending) -> None:
        """Count one schedule."""
        self.schedules += 1
        self.commands += ending.commands
        self.vanished += ending.vanished
        self.virtual_s += ending.virtual_s
        self.runs.update(ending.runs)
        self.faults.update(kind for _, kind in ending.injected)


class SimulationFailed(AssertionError):
    """A schedule went wrong. `seed` gives it again; `check` says what does not hold; `history` is the shortened
    one, line by line."""

    def __init__(self, ending: Ending, plan: Plan, short: Ending, short_plan: Plan, rerun: str) -> None:
        self.seed, (self.check, what) = ending.seed, ending.violated or ("", "")
        self.history = short.lines
        parts, rest = parts_of(plan, ending), parts_of(short_plan, short)
        left = ", ".join(
            f"{sum(part.kind == kind for part in rest)} of {sum(part.kind == kind for part in parts)} {kind}s"
            for kind in ("fault", "incident", "act")
        )
        super().__init__(
            f"the schedule of seed {ending.seed} went wrong\n  {what}\n  again: {rerun}\n"
            f"  shortened to {left}:\n{shown(short.lines)}\n  {short.violated[1] if short.violated else what}"
        )


def simulate(
    tasks: TaskSpec | Sequence[TaskSpec],
    *definitions: Worker | Verifier | ModuleType,
    seeds: Iterable[int] = range(100),
    faults: Faults | None = None,
    check: Check | None = None,
    limits: Limits | values.Limits | None = None,
    failure_policy: FailurePolicy = "continue_independent",
    max_depth: int = 8,
    max_decompositions: int = 1,
) -> Simulated:
    """Run the tasks once for every seed, with these workers and verifiers, while everything around them goes wrong;
    then check that nothing was decided twice, lost or made up, and that the run came to an end.

    `check` is called with the result of every run, and raises when it is not what it has to be. `faults` says what goes
    wrong (`NO_FAULTS`: nothing). The other arguments are those of `Dagbok.start`. Functions run in virtual time, so
    `asyncio.sleep(3600)` takes none; sync functions run in one piece. They must do no real I/O (give them fakes), and
    take their chances from `random`, which is seeded. A function may be called more than once for a task, and its
    process may vanish while it runs: that is the point.

    Raises `SimulationFailed` with the shortened history of the first schedule that goes wrong; the same seed gives the
    same history again. Raises `InvalidInput` when the tasks name a worker or verifier that was not given, there is no
    task, or an argument is of another kind (`usage`), and `RuntimeError` inside of a running event loop: call it from a
    plain function.
    """
    wanted = task_list(tasks)
    if not wanted:
        raise InvalidInput("there is no task to simulate", code=Code.USAGE, advice="give at least one TaskSpec")
    if check is not None and not callable(check):
        raise arguments.wrong("check", check, "give a function of a RunResult")
    arguments.typed("seeds", seeds, Iterable)
    if faults is not None:
        arguments.typed("faults", faults, Faults)
    check_start(failure_policy, max_depth, max_decompositions)
    registry = registry_of(definitions)
    check_named(wanted, registry)
    workload = GivenWorkload(
        wanted,
        registry,
        check,
        limits=limits if isinstance(limits, values.Limits) else encode_limits(Limits() if limits is None else limits),
        failure_policy=failure_policy,
        max_depth=max_depth,
        max_decompositions=max_decompositions,
    )
    what = Faults() if faults is None else faults
    return simulate_workload(workload, seeds, what, rerun="simulate(…, seeds=[{seed}])")


def simulate_workload(workload: Workload, seeds: Iterable[int], faults: Faults, *, rerun: str) -> Simulated:
    """The same for any workload. `rerun`: how to have one seed again, with `{seed}` in it. Raises like `simulate`."""
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("a simulation has an event loop of its own: call it from a plain function, not from async")
    total = Simulated()
    for seed in seeds:
        arguments.typed("a seed", seed, int)
        plan = plan_of(seed, workload, faults)
        ending = live_through(plan, workload)
        if ending.violated is not None:
            raise explained(plan, ending, workload, rerun.format(seed=seed))
        total.add(ending)
    return total


def explained(plan: Plan, ending: Ending, workload: Workload, rerun: str) -> SimulationFailed:
    """The failure of a schedule, with its shortened history."""
    short_plan = shortened(plan, ending, lambda each: live_through(each, workload))
    return SimulationFailed(ending, plan, live_through(short_plan, workload, trace=True), short_plan, rerun)
