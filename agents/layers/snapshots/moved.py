"""Which layers stand elsewhere: as few as explain how two orders differ."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.snapshots.found import FoundLayers


def moved_names(names: list[str], found: FoundLayers) -> frozenset[str]:
    """Names of the graph, in its order, against a snapshot. What was deleted, or has no known order, did not move."""
    if not found.in_order or [each.name for each in found.layers] == names:
        return frozenset()
    at = {each.name: place for place, each in enumerate(found.layers) if each.lifecycle is not LifecycleState.CLOSED}
    common = [name for name in names if name in at]
    places = [at[name] for name in common]
    if places == sorted(places):
        return frozenset()
    stayed = _longest_rising(places)
    return frozenset(name for name, place in zip(common, places, strict=True) if place not in stayed)


def _longest_rising(places: Sequence[int]) -> set[int]:
    """The members of a longest rising subsequence of different numbers."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for place in places:
        length = bisect_left(ends, place)
        before[place] = ends[length - 1] if length else None
        ends[length : length + 1] = [place]
    stayed: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        stayed.add(last)
        last = before[last]
    return stayed
