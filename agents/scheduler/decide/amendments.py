"""Decides changes of what a run is held to: its limits, which grow, and its pinned values, on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from dagbok.agents.scheduler.decide.branch import close, fails_fast, reopen
from dagbok.agents.scheduler.decide.budget import overdrawn
from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.decide.guards import mendable_run
from dagbok.agents.scheduler.decide.judges import judge_of
from dagbok.agents.scheduler.decide.payload import MAX_NUMBER, is_cost
from dagbok.agents.scheduler.decide.proceed import proceed
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.events.run.limits import asked, lowered
from dagbok.events.run.values import STRUCTURE, Limits, Pinned
from dagbok.projections.task_graph.state import ACTIVE_TASK, RunState, TaskNode


def set_limits(run: RunState, command: c.SetLimits, by: By) -> Iterator[e.Event]:
    """Upward only, so that nothing that was accepted becomes illegal: for the same reason a budget that the run did not
    have begins at what is used and reserved, or above (ADR 12). What is not named stays. A run whose budget was
    exhausted goes on."""
    mendable_run(run)
    wanted = _wanted(run.limits, command)
    check_limits(wanted)
    if lower := lowered(run.limits, wanted):
        stand = ", ".join(f"{name} stands at {getattr(run.limits, name)}" for name in lower)
        raise Refused(
            Code.CONFIG_MISMATCH,
            f"limits only grow: {stand}",
            advice="name values that are not smaller, and only the limits that are to change",
        )
    if over := overdrawn(run, wanted, by.now_ms):
        raise Refused(
            Code.BUDGET_EXHAUSTED,
            "; ".join(f"{each.limit} would be below {each.said}" for each in over),
            advice="name at least " + ", ".join(f"{each.limit}={each.least}" for each in over),
        )
    yield e.LimitsSet(wanted, run.limits)
    if run.exhausted:
        yield from reopen(run, "its limits are raised")
    yield from proceed(run, by.now_ms)


def amend(run: RunState, command: c.AmendRun, by: By) -> Iterator[e.Event]:
    """Verifiers are added or changed, never taken away. Reviews under one that changes begin anew under the new one."""
    mendable_run(run)
    before = run.bound()
    pinned = _amended(before, command)
    check_pinned(pinned)
    if pinned == before:
        raise Refused(Code.VERSION_CONFLICT, f"run {run.run} is bound to these values already")
    reviews = [node for task in run.active if _is_judged_anew(run, node := run.tasks[task], pinned)]
    yield e.RunAmended(pinned, before, command.reason)
    yield from close(reviews, "run_amended")
    if run.status == "failed" and any(run.counts.get(status) for status in ACTIVE_TASK):
        # It failed at the first failure, and may go on after it now.
        yield from reopen(run, "its failure policy is amended")
    elif run.status == "blocked" and fails_fast(run):
        # It waits for a person although one failure ends it now: it goes on to that end.
        yield from reopen(run, "its failure policy is amended")
    yield from proceed(run, by.now_ms)


def _wanted(now: Limits, command: c.SetLimits) -> Limits:
    if command.named is None:
        return asked(now, command.limits)
    unknown = sorted(set(command.named).difference(Limits.__struct_fields__))
    if unknown or not command.named:
        raise Refused(Code.INVALID_SPEC, f"no limits: {', '.join(unknown)[:200]}" if unknown else "no limit is named")
    return asked(now, command.limits, command.named)


def check_limits(limits: Limits) -> None:
    """Each is a number that can be reached. Raises `Refused` (`invalid_spec`)."""
    if limits.max_cost is not None and not is_cost(limits.max_cost):
        raise Refused(Code.INVALID_SPEC, f"max_cost is no decimal number: {limits.max_cost[:40]!r}")
    numbers = {name: getattr(limits, name) for name in Limits.__struct_fields__ if name != "max_cost"}
    _check_numbers({name: value for name, value in numbers.items() if value is not None})


def check_pinned(pinned: Pinned) -> None:
    """What a run may be bound to. Raises `Refused` (`invalid_spec`)."""
    _check_numbers({"max_depth": pinned.max_depth, "max_decompositions": pinned.max_decompositions})
    if STRUCTURE in pinned.verifiers:
        raise Refused(Code.INVALID_SPEC, f"{STRUCTURE!r} is the built-in check: no verifier may have this key")


def _check_numbers(numbers: Mapping[str, int]) -> None:
    wrong = [name for name, value in numbers.items() if not 0 < value <= MAX_NUMBER]
    if wrong:
        raise Refused(Code.INVALID_SPEC, f"must be above zero and at most {MAX_NUMBER}: {', '.join(wrong)}")


def _amended(pinned: Pinned, command: c.AmendRun) -> Pinned:
    for key, pin in command.verifiers.items():
        old = pinned.verifiers.get(key)
        gone = [kind for kind in old.judges if kind not in pin.judges] if old is not None else []
        if gone:
            raise Refused(Code.CONFIG_MISMATCH, f"verifier {key!r} has to judge {gone[0]}s, as it did")
    return msgspec.structs.replace(
        pinned,
        verifiers={**pinned.verifiers, **command.verifiers},
        failure_policy=command.failure_policy or pinned.failure_policy,
        max_depth=pinned.max_depth if command.max_depth is None else command.max_depth,
        max_decompositions=(
            pinned.max_decompositions if command.max_decompositions is None else command.max_decompositions
        ),
    )


def _is_judged_anew(run: RunState, node: TaskNode, pinned: Pinned) -> bool:
    if node.attempt is None or node.attempt.kind != "verify":
        return False
    key = judge_of(run, node)
    return pinned.verifiers[key] != run.bound().verifiers[key]
