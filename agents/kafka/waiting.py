"""How many attempts are open and not claimed, by lane, as a metric with few labels: pools are named by users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from prometheus_client import Gauge

from dagbok.agents.queue.port import Lane

NO_TOPIC: Final = "(no topic)"
"""The label of all pools together that have none; no pool that has one can be called so."""


class Waiting:
    """`gauge`: has the labels `pool` and `kind`. A pool has a label of its own while it has a topic, and when attempts
    have waited in it."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._counts: Counter[Lane] = Counter()
        self.has_topic: Callable[[Lane], bool] = lambda _: False
        """Set by who knows."""

    def change(self, lane: Lane, by: int) -> None:
        """So many more wait in the lane, or fewer."""
        self._counts[lane] += by
        if not self._counts[lane] and not self.has_topic(lane):
            del self._counts[lane]

    def show(self) -> None:
        """Bring the gauge up to date: a pool without a topic has no label any more."""
        shown: Counter[Lane] = Counter()
        for (kind, pool), count in tuple(self._counts.items()):
            if self.has_topic((kind, pool)):
                shown[kind, pool] = count
            elif count:
                shown[kind, NO_TOPIC] += count
            else:
                del self._counts[kind, pool]
        self._gauge.clear()
        for (kind, pool), count in shown.items():
            self._gauge.labels(pool=pool, kind=kind).set(count)
