"""What is wrong with a data folder, seen from outside its processes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import version

from dagbok.agents.doctor import standstill
from dagbok.agents.doctor.finding import Commands, Finding, State, plain, plural
from dagbok.agents.doctor.keeper import ReadSlots
from dagbok.agents.doctor.look import Look, look
from dagbok.agents.hosting.folder import PARTITION, DataFolder
from dagbok.agents.hosting.heads import check_log
from dagbok.agents.hosting.presence import look_at_owner
from dagbok.agents.hosting.serving import served_pools
from dagbok.agents.hosting.snapshots import parts_of, slots_of
from dagbok.agents.queue.port import lane_of
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import system_ms
from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.snapshots.keeper import SnapshotKeeper


async def examine_folder(folder: DataFolder, command: Commands = plain) -> Sequence[Finding]:
    """All checks of a folder that is there. Changes nothing, and waits for nobody."""
    serve = command("up", "--import FILE")
    found = [Finding("versions", "ok", f"dagbok {version('dagbok')}")]
    try:
        seen = await _look(folder)
    except (DagbokError, OSError) as error:
        advice = error.advice if isinstance(error, DagbokError) else "make the folder readable for this user"
        return [*found, Finding("log", "failed", str(getattr(error, "message", error)), advice)]
    found += standstill.halted([seen], 1)
    if seen.halts is not None:
        return found
    now_ms = system_ms()
    waits = standstill.keys_of([seen])
    found += [_owner(folder, seen, serve), *_pools(folder, waits, now_ms, serve)]
    found += standstill.keys([seen], now_ms, lambda _role, _pool: serve)
    found += standstill.deadlines([seen], now_ms, "nobody decides, or the owner is behind: see what is said of it")
    found += standstill.paused([seen], now_ms, command)
    return found


async def _look(folder: DataFolder) -> Look:
    await asyncio.to_thread(
        check_log, folder.log, folder.tables, folder.queue, folder.snapshots, folder.artifacts, PARTITION
    )
    log = SqliteLog.open(folder.log)
    try:
        keeper = SnapshotKeeper(log, PARTITION, parts_of(folder), ReadSlots(slots_of(folder)))
        return await look(log, PARTITION, keeper, now_ms=system_ms(), log_refuses=True)
    finally:
        await log.close()


def _owner(folder: DataFolder, seen: Look, serve: str) -> Finding:
    """Somebody decides, if there is anything to decide."""
    owner = look_at_owner(folder)
    numbers = {"runs": seen.going, "silent_s": owner.silent_s}
    if owner.state == "alive":
        return Finding("owner", "ok", str(owner), numbers=numbers)
    if owner.state == "silent":
        advice = f"let it go on (kill -CONT {owner.pid}), or end it: another one takes over"
        return Finding("owner", "failed", str(owner), advice, numbers)
    state: State = "failed" if seen.going else "ok"
    told = f"{owner}; {plural(seen.going, 'run') if seen.going else 'no run'} would go on"
    return Finding("owner", state, told, serve if seen.going else "", numbers)


def _pools(folder: DataFolder, waits: standstill.Waits, now_ms: int, serve: str) -> Sequence[Finding]:
    """Somebody serves each pool that open attempts are in."""
    served = served_pools(folder)
    found = []
    for kind, pool in sorted({lane for (lane, _), wait in waits.items() if wait.open}):
        count, oldest_s, told = standstill.waiting_in(waits, lane_of(kind, pool), now_ms)
        numbers, about = {"open": count, "oldest_s": oldest_s}, {"kind": kind, "pool": pool}
        if served is None or pool in served:
            known = "" if served is not None else "; it is not known which pools are served"
            found.append(Finding(f"pool {pool}", "ok", told + known, numbers=numbers, about=about))
        else:
            found.append(Finding(f"pool {pool}", "failed", f"nobody serves it: {told}", serve, numbers, about))
    return found or [Finding("pools", "ok", "no attempt is open that nobody has")]
