"""One partition as its log has it: whether a scheduler could go on with it, and what stands still in it.

It is folded as a takeover folds it, by the same code, so what stops a scheduler stops this look, with the same reason.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from dagbok.agents.doctor.keeper import LookingKeeper, PausedBy
from dagbok.agents.queue.port import Lane, lane_of
from dagbok.agents.scheduler.decide.judges import key_of
from dagbok.agents.scheduler.inbox import MAX_CLOCK_AHEAD_MS
from dagbok.agents.scheduler.recover import Keeper, Recovery
from dagbok.agents.scheduler.timers import Timers
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, LogCorrupt
from dagbok.events.log.port import COMMANDS, Log
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import CLOSED_RUN, FINAL_TASK, Attempt, RunState

LATE_MS = 10_000
"""A deadline that has passed by less is not late: its timer may be just firing, or be tried again."""


class Whose(msgspec.Struct, frozen=True, order=True):
    """A run, by all that names it."""

    tenant: str
    project: str
    run: str


class Late(msgspec.Struct, frozen=True):
    """Deadlines of a run that have passed: how many, and the oldest of them: of what, of which task ("" for the run's
    own), and when it was (log time)."""

    whose: Whose
    count: int
    kind: str
    task: str
    deadline_ms: int


class Paused(msgspec.Struct, frozen=True):
    """A run that is paused, and of which nothing is under way. `by`: none where that was before the snapshot."""

    whose: Whose
    by: PausedBy | None


class KeyWait(msgspec.Struct):
    """Attempts of one worker or verifier key in one lane: `open` ones, which nobody has claimed, the oldest since
    `oldest_ms`; how often they were turned down, and by which processes (the last that each turned down counts); and
    those that are `held`, under a lease that has not run out."""

    open: int = 0
    oldest_ms: int = 0
    rejections: int = 0
    processes: frozenset[str] = frozenset()
    held: int = 0


class Look(msgspec.Struct, frozen=True):
    """What there is to say of a partition. `halts`: why nobody can decide for it; then the rest is empty. `going`: how
    many of its runs would go on by themselves; `pools`: how many tasks of open runs are in which pool and not done."""

    partition: int
    halts: DagbokError | None = None
    going: int = 0
    late: tuple[Late, ...] = ()
    paused: tuple[Paused, ...] = ()
    keys: dict[tuple[Lane, str], KeyWait] = {}
    pools: dict[str, int] = {}


async def look(log: Log, partition: int, keeper: Keeper, *, now_ms: int, log_refuses: bool) -> Look:
    """Fold a partition and look. `now_ms`: the time of whoever puts the append time on records; `log_refuses` as in
    `Recovery`. Raises `LogError` (`log_unreachable`) and what opening its snapshots raises."""
    looking = LookingKeeper(keeper)
    try:
        state = await Recovery(log, partition, looking, log_refuses=log_refuses).fold()
        await _check_clock(log, state, now_ms)
    except DagbokError as error:
        if error.retry:
            raise
        return Look(partition, error)
    open_runs = [run for run in state.runs.values() if run.exists and run.status not in CLOSED_RUN]
    return Look(
        partition,
        going=sum(run.status == "running" for run in open_runs),
        late=_late(state, now_ms),
        paused=tuple(
            Paused(_whose(run), looking.paused.get(run.stream)) for run in open_runs if _rests(run)
        ),
        keys=_keys(open_runs, now_ms),
        pools=_pools(open_runs),
    )


async def _check_clock(log: Log, state: PartitionState, now_ms: int) -> None:
    """The next command, if there is one, stops its owner when it comes from the future."""
    start = state.position.last_command_offset + 1
    for record in await log.read(COMMANDS, state.partition, start, 1):
        ahead_ms = record.append_ms - now_ms
        if ahead_ms > MAX_CLOCK_AHEAD_MS:
            raise LogCorrupt(
                f"the command at {state.partition}:{record.offset} was appended {ahead_ms // 1000} s in the future",
                code=Code.CLOCK_AHEAD,
                advice="set the clocks of brokers and schedulers, or wait until they have caught up",
            )


def _whose(run: RunState) -> Whose:
    return Whose(run.tenant, run.project, run.run)


def _late(state: PartitionState, now_ms: int) -> tuple[Late, ...]:
    """By the owner's own timers: what it would fire now, if it were as slow as it may be."""
    timers = Timers()
    timers.rebuild(state)
    found: dict[Whose, Late] = {}
    for run, timer in timers.due(state, now_ms - LATE_MS):
        whose = _whose(run)
        known = found.get(whose)
        if known is None:
            found[whose] = Late(whose, 1, timer.kind, timer.task, timer.deadline_ms)
        else:
            found[whose] = msgspec.structs.replace(known, count=known.count + 1)
    return tuple(found.values())


def _rests(run: RunState) -> bool:
    """Paused, and no process has an attempt of it: what is open and unclaimed is not given out meanwhile."""
    attempts = [run.tasks[task].attempt for task in run.active]
    return run.status == "paused" and not any(attempt is not None and attempt.claim for attempt in attempts)


def _keys(runs: list[RunState], now_ms: int) -> dict[tuple[Lane, str], KeyWait]:
    found: dict[tuple[Lane, str], KeyWait] = {}
    for run in runs:
        for task in run.active if run.status == "running" else ():
            node = run.tasks[task]
            if (attempt := node.attempt) is not None:
                place = lane_of(attempt.kind, node.spec.pool), key_of(run, node, attempt.kind)
                _count(found.setdefault(place, KeyWait()), attempt, now_ms)
    return found


def _pools(runs: list[RunState]) -> dict[str, int]:
    return dict(Counter(node.spec.pool for run in runs for node in run.tasks.values() if node.status not in FINAL_TASK))


def _count(wait: KeyWait, attempt: Attempt, now_ms: int) -> None:
    if attempt.claim is not None:
        wait.held += attempt.lease_until_ms > now_ms
        return
    wait.open += 1
    wait.oldest_ms = min(wait.oldest_ms or attempt.opened_ms, attempt.opened_ms)
    wait.rejections += attempt.unserved
    wait.processes |= attempt.rejected_by.keys()
