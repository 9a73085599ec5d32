"""Liveness by progress: the rule that tells a partition that stands still from one that has nothing to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from dagbok.events.log.kafka_client import Place

STALL_S: Final = 120.0
FOLD_S: Final = 900.0
"""So long a partition may take to be folded: by snapshots it is seconds, without any it may be minutes."""


class Standing(msgspec.Struct, frozen=True):
    """How far this process is in one of its partitions: the offset of the next record, none while it cannot tell (it
    folds). `excused`: it stands still for a reason that a restart would not change, such as having no place free."""

    place: Place
    position: int | None
    excused: bool = False


class Stalls:
    """Looks again and again. Times are those of one monotonic clock, in seconds."""

    def __init__(self, stall_s: float = STALL_S, fold_s: float = FOLD_S) -> None:
        self._stall_s, self._fold_s = stall_s, fold_s
        self._since: dict[Place, tuple[int | None, float]] = {}

    def look(self, standings: Iterable[Standing], ends: Mapping[Place, int], now_s: float) -> Sequence[str]:
        """What stands still for too long although there is something to read, in words; nothing when all is well."""
        found: list[str] = []
        seen: dict[Place, tuple[int | None, float]] = {}
        for standing in standings:
            place, position = standing.place, standing.position
            before, since_s = self._since.get(place, (-1, now_s))
            waiting = ends.get(place, 0) - (position or 0)
            if standing.excused or waiting <= 0 or before != position:
                since_s = now_s
            seen[place] = position, since_s
            still_s = now_s - since_s
            if position is None and still_s >= self._fold_s:
                found.append(f"{place.topic}[{place.partition}] is being folded for {still_s:.0f} s")
            elif position is not None and still_s >= self._stall_s:
                found.append(
                    f"{place.topic}[{place.partition}] does not progress: {waiting} records wait,"
                    f" and none was done with for {still_s:.0f} s"
                )
        self._since = seen
        return found

    def forget(self) -> None:
        """Nothing is known of what there is to read: what stands still now may have good reason."""
        self._since.clear()
