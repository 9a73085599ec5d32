"""What stands still in a log, as findings: whose it is, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from dagbok.agents.doctor.finding import Commands, Finding, State, plain, plural
from dagbok.agents.doctor.look import KeyWait, Late, Look, Paused, Whose
from dagbok.agents.queue.port import Lane

NAMED: Final = 10
"""So many runs are named by a check; of the rest there is the number."""
KEYS_NAMED: Final = 5
ROLE: Final = {"work": "worker", "verify": "verifier"}
KINDS_TOLD: Final = {
    "lease": "the lease of an attempt",
    "timeout": "the time limit of an attempt",
    "backoff": "the wait before another attempt",
    "wall": "the wall time of the run",
}
Waits = Mapping[tuple[Lane, str], KeyWait]


def halted(looks: Iterable[Look], runs_on: int, command: Commands = plain) -> Sequence[Finding]:
    """Partitions that nobody can decide for. `runs_on`: how many there are."""
    found = [
        Finding(
            f"partition {look.partition}",
            "failed",
            f"halts: {look.halts.message} ({look.halts.code})",
            look.halts.advice.replace(plain("doctor"), command("doctor")),
            about={"partition": look.partition, "code": str(look.halts.code)},
        )
        for look in looks
        if look.halts is not None
    ]
    return found or [Finding("partitions", "ok", f"{runs_on} can be decided for", numbers={"partitions": runs_on})]


def deadlines(looks: Sequence[Look], now_ms: int, advice: str) -> Sequence[Finding]:
    """Runs with deadlines that have passed, and nothing came of it. `advice`: what to do about it here."""
    late = sorted((each for look in looks for each in look.late), key=lambda each: each.deadline_ms)
    if not late:
        return [Finding("deadlines", "ok", f"none has passed that nothing came of{_but(looks)}")]
    return [*[_late(each, now_ms, advice) for each in late[:NAMED]], *_rest("deadlines", "failed", late, advice)]


def paused(looks: Sequence[Look], now_ms: int, command: Commands = plain) -> Sequence[Finding]:
    """Runs that stand still until somebody resumes them."""
    found = [each for look in looks for each in look.paused]
    if not found:
        return [Finding("paused", "ok", f"no run is paused with nothing under way{_but(looks)}")]
    advice = f"{command('ls', '--status paused')} names them, of one project"
    return [*[_paused(each, now_ms, command) for each in found[:NAMED]], *_rest("paused", "warning", found, advice)]


def keys_of(looks: Iterable[Look]) -> Waits:
    """What waits in all partitions together."""
    found: dict[tuple[Lane, str], KeyWait] = {}
    for look in looks:
        for place, wait in look.keys.items():
            known = found.setdefault(place, KeyWait())
            known.open += wait.open
            known.held += wait.held
            known.rejections += wait.rejections
            known.processes |= wait.processes
            times = [each for each in (known.oldest_ms, wait.oldest_ms) if each]
            known.oldest_ms = min(times, default=0)
    return found


def keys(looks: Sequence[Look], now_ms: int, how: Callable[[str, str], str]) -> Sequence[Finding]:
    """Worker and verifier keys that processes of the pool have turned down, and whose attempts nobody has. `how`: to
    serve, for a role and a pool."""
    found = [
        _key(lane, key, wait, now_ms, how)
        for (lane, key), wait in sorted(keys_of(looks).items(), key=lambda item: item[0])
        if wait.open and wait.rejections
    ]
    return found or [Finding("keys", "ok", f"no open attempt was turned down by those who were sent it{_but(looks)}")]


def waiting_in(waits: Waits, lane: Lane, now_ms: int) -> tuple[int, float, str]:
    """Of the open attempts of a lane that nobody has: how many, for how many seconds the oldest is, and words."""
    here = {key: wait for (each, key), wait in waits.items() if each == lane and wait.open}
    count = sum(wait.open for wait in here.values())
    oldest_s = _seconds(now_ms - min((wait.oldest_ms for wait in here.values()), default=now_ms))
    named = ", ".join(sorted(here)[:KEYS_NAMED]) + (", …" if len(here) > KEYS_NAMED else "")
    told = f"{plural(count, 'attempt')} open that nobody has, of {named}, the oldest for {oldest_s:.0f} s"
    return count, oldest_s, told


def _but(looks: Sequence[Look]) -> str:
    halting = sum(look.halts is not None for look in looks)
    halt = "halts" if halting == 1 else "halt"
    return f"; of {plural(halting, 'partition')} that {halt} it is not known" if halting else ""


def _late(late: Late, now_ms: int, advice: str) -> Finding:
    ago_s = _seconds(now_ms - late.deadline_ms)
    more = f", and {late.count - 1} more of it" if late.count > 1 else ""
    task = f" of task {late.task}" if late.task else ""
    told = f"{_named(late.whose)}: {KINDS_TOLD.get(late.kind, late.kind)}{task} ended {ago_s:.0f} s ago{more}"
    numbers = {"deadlines": late.count, "late_s": ago_s}
    about = _about(late.whose) | {"kind": late.kind} | ({"task": late.task} if late.task else {})
    return Finding("deadlines", "failed", f"{told}; nothing came of it", advice, numbers, about)


def _paused(found: Paused, now_ms: int, command: Commands) -> Finding:
    whose = found.whose
    since, numbers = "", {}
    if found.by is not None:
        numbers = {"paused_s": _seconds(now_ms - found.by.at_ms)}
        since = f" for {numbers['paused_s']:.0f} s" + (f" ({found.by.reason[:200]})" if found.by.reason else "")
    told = f"{_named(whose)} has been paused{since}: nothing of it is under way, and nothing will resume it"
    name = f"{whose.run} --tenant {whose.tenant} --project {whose.project}"
    advice = f"{command('resume', name)}, or {command('cancel', name)}"
    return Finding("paused", "warning", told, advice, numbers, _about(whose))


def _key(lane: Lane, key: str, wait: KeyWait, now_ms: int, how: Callable[[str, str], str]) -> Finding:
    kind, pool = lane
    role, oldest_s = ROLE[kind], _seconds(now_ms - wait.oldest_ms)
    told = (
        f"the {role} {key!r} in the pool {pool}: {plural(wait.open, 'attempt')} open, the oldest for {oldest_s:.0f} s; "
        f"turned down {plural(wait.rejections, 'time')}, by {plural(len(wait.processes), 'process')}"
    )
    told += f"; {plural(wait.held, 'other')} held by somebody" if wait.held else "; nobody holds one"
    numbers = {
        "open": wait.open,
        "oldest_s": oldest_s,
        "processes": len(wait.processes),
        "rejections": wait.rejections,
        "held": wait.held,
    }
    advice = f"{how(role, pool)} with what declares it; all processes of a pool need the same keys"
    about = {"kind": kind, "pool": pool, "key": key}
    return Finding("keys", "warning" if wait.held else "failed", told, advice, numbers, about)


def _rest(what: str, state: State, found: Sequence[object], advice: str) -> Sequence[Finding]:
    rest = len(found) - NAMED
    return [Finding(what, state, f"and {plural(rest, 'more run')}", advice, {"runs": rest})] if rest > 0 else []


def _named(whose: Whose) -> str:
    return f"run {whose.run} of {whose.tenant}/{whose.project}"


def _about(whose: Whose) -> dict[str, str | int]:
    return {"tenant": whose.tenant, "project": whose.project, "run": whose.run}


def _seconds(ms: int) -> float:
    return max(0, ms) / 1000
