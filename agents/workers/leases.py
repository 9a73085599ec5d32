"""Keeps the leases of a worker process: claims what runs for long, renews what is claimed, stops what is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dagbok.agents.workers.definitions import PURE_GRACE_S
from dagbok.agents.workers.held import Held
from dagbok.agents.workers.holdings import Holdings

LONGEST_TICK_S = 1.0
SHORTEST_TICK_S = 0.01


class LeaseKeeper:
    """Looks at all held attempts a few times per shortest lease."""

    def __init__(self, holdings: Holdings, now_s: Callable[[], float], *, pure_grace_s: float = PURE_GRACE_S) -> None:
        self._holdings, self._now_s = holdings, now_s
        self._pure_grace_s = pure_grace_s

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._holdings.shorter.clear()
            wanted_s = min(self._holdings.shortest_lease_s / 8, self._pure_grace_s / 4, LONGEST_TICK_S)
            try:
                async with asyncio.timeout(max(wanted_s, SHORTEST_TICK_S)):
                    await self._holdings.shorter.wait()
            except TimeoutError:
                self.tick()

    def tick(self) -> None:
        """What is due now."""
        now_s = self._now_s()
        renewals: dict[str, list[Held]] = {}
        for held in self._holdings:
            if held.stopped is not None:
                continue
            if held.claimed:
                self._keep(held, now_s, renewals)
            elif not held.claiming and not held.submitted and now_s >= self._claim_from_s(held):
                self._holdings.claim_beside(held)
        for run, helds in renewals.items():
            self._holdings.renew(run, helds)

    def _keep(self, held: Held, now_s: float, renewals: dict[str, list[Held]]) -> None:
        if now_s - held.leased_s >= held.lease_s:
            # By this clock the lease is over, and others may run the task now, whatever the log says later.
            held.stop("no renewal was acknowledged for one lease")
        elif now_s - max(held.leased_s, held.renewed_s) >= held.lease_s / 3:
            renewals.setdefault(held.dispatch.run, []).append(held)

    def _claim_from_s(self, held: Held) -> float:
        return max(held.began_s + min(self._pure_grace_s, held.lease_s / 3), held.claim_after_s)
