"""What a run has used of what it may use, and the command that lets it use more."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from dagbok.cli.advised import advised
from dagbok.cli.text import duration, short, size
from dagbok.events.codes import Code
from dagbok.events.log.clock import system_ms
from dagbok.projections.views.graph.rows import RunRow, TaskRow
from dagbok.settings import Settings


def budget_line(run: RunRow) -> str:
    """`tokens 1,200 of 5,000 (300 reserved), cost 0.12 of 1, wall time 12.0 s of 1 h 00 m`: what has a limit, or was
    used. Empty when there is neither."""
    parts = []
    if run.tokens_used or run.tokens_reserved or run.max_tokens is not None:
        limit = None if run.max_tokens is None else f"{run.max_tokens:,}"
        reserved = f"{run.tokens_reserved:,}" if run.tokens_reserved else ""
        parts.append("tokens " + _of(f"{run.tokens_used:,}", limit, reserved))
    if run.cost_used != "0" or run.cost_reserved != "0" or run.max_cost is not None:
        reserved = run.cost_reserved if run.cost_reserved != "0" else ""
        parts.append("cost " + _of(run.cost_used, run.max_cost, reserved))
    if run.max_wall_ms is not None:
        parts.append("wall time " + _of(duration(elapsed_ms(run)), duration(run.max_wall_ms)))
    if run.max_total_artifact_bytes is not None:
        parts.append("artifacts " + _of(size(run.artifact_bytes), size(run.max_total_artifact_bytes)))
    return ", ".join(parts)


def raising(settings: Settings, run: RunRow, waiting: TaskRow | None) -> Sequence[str]:
    """Which budget has run out, and the command that raises it by as much again. `waiting`: the task that the run
    cannot afford; none when its wall time is over. Nothing is said of a task that is blocked itself."""
    if run.status != "blocked" or run.code != Code.BUDGET_EXHAUSTED:
        return []
    if waiting is None:
        wall_ms = run.max_wall_ms or 0
        return _said(settings, run, "wall time", f"max_wall_ms={elapsed_ms(run) + wall_ms}")
    if waiting.status == "blocked":
        return []
    lines: list[str] = []
    wanted = waiting.tokens_per_attempt
    tokens = run.tokens_used + run.tokens_reserved
    if run.max_tokens is not None and tokens + max(1, wanted) > run.max_tokens:
        what = f"tokens: task {short(waiting.task)} reserves {wanted:,}" if wanted else "tokens"
        lines += _said(settings, run, what, f"max_tokens={tokens + max(run.max_tokens, wanted)}")
    cost, wanted_cost = Decimal(run.cost_used) + Decimal(run.cost_reserved), Decimal(waiting.cost_per_attempt)
    limit = None if run.max_cost is None else Decimal(run.max_cost)
    if limit is not None and (cost + wanted_cost > limit or (not wanted_cost and cost >= limit)):
        what = f"cost: task {short(waiting.task)} reserves {waiting.cost_per_attempt}" if wanted_cost else "cost"
        lines += _said(settings, run, what, f"max_cost={cost + max(limit, wanted_cost):f}")
    return lines


def elapsed_ms(run: RunRow) -> int:
    """Since the start of the run, to its end or now."""
    return max(0, (run.closed_ms if run.closed_ms is not None else system_ms()) - run.started_ms)


def _of(used: str, limit: str | None, reserved: str = "") -> str:
    of = "" if limit is None else f" of {limit}"
    return f"{used}{of} ({reserved} reserved)" if reserved else used + of


def _said(settings: Settings, run: RunRow, what: str, change: str) -> list[str]:
    return [f"out of {what}; to go on: {advised(settings, 'limits', short(run.run), change)}"]
