"""How many attempts of each tenant are sent or claimed at once in a partition, and which lanes hold something back for
a tenant that may have no more.

Everything costs the same however many attempts, tenants and lanes there are: a lane sets a tenant aside when it comes
across it, and one lane at a time is woken when the tenant has a place again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dagbok.agents.queue import Lane
from dagbok.events.arguments import wrong

StreamAttempt = tuple[str, str, int]
"""Stream of the run, task, epoch: what names an attempt here, where runs go by their streams."""

TenantLimit = Callable[[str], int | None]
"""By tenant, the most attempts that are sent or claimed at once in one partition; none: as many as there are."""


def limit_by_tenant(limit: int | TenantLimit | None) -> TenantLimit | None:
    """One number for all tenants, or what is a limit by tenant already. Raises `InvalidInput` (`usage`) for a number
    below 1, and for what is neither."""
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1:
        return lambda _tenant: limit
    if limit is None or (not isinstance(limit, int) and callable(limit)):
        return limit
    raise wrong("tenant_limit", limit, "name a number above zero, or none")


class TenantPlaces:
    """`limit_of` is asked whenever it matters; without it nothing is counted."""

    def __init__(self, limit_of: TenantLimit | None = None) -> None:
        self._limit_of = limit_of
        self._holders: dict[StreamAttempt, str] = {}
        self._taken: Counter[str] = Counter()
        self._aside: dict[str, dict[Lane, None]] = {}
        self._freed: dict[str, None] = {}

    def clear(self) -> None:
        """Forget everything."""
        for table in (self._holders, self._taken, self._aside, self._freed):
            table.clear()

    def is_full(self, tenant: str) -> bool:
        """Whether nothing more of the tenant may be sent now."""
        limit = None if self._limit_of is None else self._limit_of(tenant)
        return limit is not None and self._taken[tenant] >= limit

    def take(self, attempt: StreamAttempt, tenant: str) -> None:
        """The attempt is sent or claimed; it takes one place, however often. What is claimed counts even above the
        limit: it runs."""
        if self._limit_of is not None and attempt not in self._holders:
            self._holders[attempt] = tenant
            self._taken[tenant] += 1

    def give(self, attempt: StreamAttempt) -> None:
        """The attempt is over, or is not to be sent now."""
        tenant = self._holders.pop(attempt, None)
        if tenant is None:
            return
        self._taken[tenant] -= 1
        if not self._taken[tenant]:
            del self._taken[tenant]
        if tenant in self._aside:
            self._freed[tenant] = None

    def set_aside(self, tenant: str, lane: Lane) -> None:
        """The lane holds something back because the tenant is full."""
        self._aside.setdefault(tenant, {})[lane] = None

    def next_to_wake(self) -> tuple[str, Lane] | None:
        """A tenant that has a place again, and the lane whose turn it is to send for it."""
        while self._freed:
            tenant = next(iter(self._freed))
            lanes = self._aside.get(tenant)
            if not lanes or self.is_full(tenant):
                del self._freed[tenant]
                continue
            lane = next(iter(lanes))
            del lanes[lane]
            if not lanes:
                del self._aside[tenant]
            return tenant, lane
        return None
