"""What happens in one schedule, as far as it is fixed beforehand. The same plan gives the same history."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

import msgspec

from dagbok.agents.workers.definitions import Registry
from dagbok.events.run.commands import RunCommand, StartRun
from dagbok.projections.task_graph.state import RunState
from dagbok.results import RunResult
from dagbok.testing.simulation.faults import Faults, Incident, incidents_of


class RunPlan(msgspec.Struct, frozen=True):
    """A run: when a client starts it, and when it does something else about it (virtual seconds)."""

    name: str
    start: StartRun
    at_s: float = 0.0
    acts_at_s: tuple[float, ...] = ()


class Hands(Protocol):
    """What simulated functions can do to the process that they run in."""

    @property
    def calm(self) -> bool:
        """Whether everything works now."""
        ...

    async def vanish(self) -> None:
        """The process is gone, here and now."""
        ...

    async def linger(self, random: Random, lease_s: float) -> None:
        """Take some time, at times longer than the lease."""
        ...

    def tell(self, what: str) -> None:
        """A line of the history."""
        ...


class Workload(Protocol):
    """What is run."""

    @property
    def pools(self) -> Sequence[str]:
        """The pools that workers serve."""
        ...

    def runs(self, random: Random) -> Sequence[RunPlan]:
        """The runs of one schedule."""
        ...

    def registry(self, seed: int, process: str, hands: Hands) -> Registry:
        """The workers and verifiers of one process."""
        ...

    def act(self, run: RunState, random: Random, *, calm: bool) -> RunCommand | None:
        """What a client does about a run, if anything. When it is `calm`, only what helps the run to an end."""
        ...

    def is_session(self, before: Any, value: Any) -> bool:
        """Whether a worker may have put a value down behind the one before (none at first)."""
        ...

    def check(self, result: RunResult) -> None:
        """Raises when the end of a run is not what it has to be."""
        ...


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule. `refuses`: the log refuses misplaced appends (SQLite), else it only reports where they landed
    (Kafka). `muted`: numbers of faults on the way that are left out."""

    seed: int
    faults: Faults
    refuses: bool
    workers: int
    network: float
    snapshot_bytes: int
    cold_after_ms: int
    batch_records: int
    incidents: tuple[Incident, ...]
    runs: tuple[RunPlan, ...]
    muted: frozenset[int] = frozenset()
    calm_from_s: float = 0.0


def plan_of(seed: int, workload: Workload, faults: Faults) -> Plan:
    """The schedule of a seed."""
    random = Random(f"plan/{seed}")
    return Plan(
        seed=seed,
        faults=faults,
        refuses=random.random() < 0.4,
        workers=random.choice((1, 2, 2, 3)),
        network=faults.network * random.choice((0.0, 0.3, 1.0)),
        snapshot_bytes=random.choice((3_000, 20_000, 10**9)),
        cold_after_ms=random.choice((2_000, 10**9)),
        batch_records=random.choice((7, 50)),
        incidents=incidents_of(random, faults),
        runs=tuple(workload.runs(random)),
        calm_from_s=faults.lasting_s,
    )
