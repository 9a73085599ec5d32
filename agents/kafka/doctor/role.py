"""A role of production: whether somebody plays it, and how far behind it is."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.doctor.finding import Finding, plural


def role(what: str, members: int, behind: Sequence[int], told: str, advice: str, *, waiting: int = 0) -> Finding:
    """A role that nobody plays is wrong when something waits for it, and worth a word else. `members`: processes of
    its group; `behind`: records, by partition; `waiting`: what waits and is not among them."""
    lag = sum(behind)
    numbers = {"members": members, "lag": lag, "partitions_behind": sum(each > 0 for each in behind)}
    words = f"{plural(members, 'process')}, {lag} {told}"
    if members:
        return Finding(what, "ok", words, numbers=numbers)
    return Finding(what, "failed" if lag or waiting else "warning", words, advice, numbers)
