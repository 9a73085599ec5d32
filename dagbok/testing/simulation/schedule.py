"""Runs one schedule from its plan to the last check."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import structlog

from dagbok.testing.simulation.audit import Audit
from dagbok.testing.simulation.history import Line, digest_of
from dagbok.testing.simulation.network import at_once
from dagbok.testing.simulation.plan import Plan, Workload
from dagbok.testing.simulation.tables import empty_tables
from dagbok.testing.simulation.violated import Violated
from dagbok.testing.simulation.world import World

ALL = 10**9
QUIET = 50


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a schedule. `violated`: the check that failed, and what it says. `digest`: of the whole log;
    `injected`: numbers and kinds of the faults on the way; `incidents`: processes that vanished."""

    seed: int
    violated: tuple[str, str] | None
    digest: str
    virtual_s: float
    commands: int
    injected: tuple[tuple[int, str], ...]
    vanished: int
    runs: dict[str, int]
    lines: tuple[Line, ...]


def live_through(plan: Plan, workload: Workload, *, trace: bool = False) -> Ending:
    """Run the schedule and check everything. The same plan gives the same ending, byte for byte."""
    with _quiet_and_seeded(plan.seed):
        world = World(plan, workload, empty_tables(), trace=trace)
        violated = None
        try:
            world.run()
            Audit(world).check()
        except Violated as found:
            violated = (found.check, str(found))
        finally:
            world.close()
    events = at_once(world.network.log.read("events", 0, 0, ALL))
    leader = world.leader
    runs = Counter(str(run.status) for run in leader.owner.state.runs.values()) if leader is not None else Counter()
    return Ending(
        seed=plan.seed,
        violated=violated,
        digest=digest_of(world.network.commands, events),
        virtual_s=world.loop.time(),
        commands=len(world.network.commands),
        injected=tuple(world.ledger.injected),
        vanished=len(world.gone),
        runs=dict(runs),
        lines=tuple(world.history.lines),
    )


@contextmanager
def _quiet_and_seeded(seed: int) -> Iterator[None]:
    """Log lines of thousands of schedules help nobody; functions that draw from `random` draw the same again."""
    configured, config, state = structlog.is_configured(), structlog.get_config(), random.getstate()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(QUIET))
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
        if configured:
            structlog.configure(**config)
        else:
            structlog.reset_defaults()
