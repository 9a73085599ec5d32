"""One lane of a pool: what waits, what was sent and not claimed, and when to send it again."""

from __future__ import annotations

import itertools
from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec

from dagbok.agents.queue import Lane
from dagbok.agents.scheduler.dispatch.fair import FairQueue
from dagbok.agents.scheduler.dispatch.tenants import StreamAttempt, TenantPlaces

WINDOW = 256
"""How many attempts of a lane may be sent and not claimed: claims clock the sending."""

SCHEDULE_TO_START_S = 30.0
UNSERVED_S = 1.0
LONGEST_DELAY_S = 600.0


class Offer(msgspec.Struct, frozen=True, gc=False):
    """An open attempt to be sent: its run's stream, its task and epoch, and how it is ordered."""

    stream: str
    task: str
    epoch: int
    tenant: str
    priority: int

    @property
    def key(self) -> StreamAttempt:
        """What names the attempt."""
        return self.stream, self.task, self.epoch


class _Out(NamedTuple):
    """How often it went out, and when it goes out again."""

    times: int
    due_s: float
    offer: Offer


class LaneState:
    """Times are seconds of a monotonic clock that the caller reads. `tenants`: of whom nothing more may be sent now."""

    def __init__(
        self,
        lane: Lane,
        tenants: TenantPlaces,
        window: int = WINDOW,
        schedule_to_start_s: float = SCHEDULE_TO_START_S,
    ) -> None:
        self._lane, self._tenants, self._window = lane, tenants, window
        self._schedule_to_start_s = schedule_to_start_s
        self._waiting: FairQueue[Offer] = FairQueue()
        self._again: deque[Offer] = deque()
        self._back: deque[Offer] = deque()
        self._sent: dict[StreamAttempt, _Out] = {}
        self._unserved: dict[StreamAttempt, int] = {}
        # First sends come due in the order in which they went out, and most are settled long before: a queue forgets
        # those at once. Only what goes out again needs a heap.
        self._first: deque[tuple[float, Offer]] = deque()
        self._due: list[tuple[float, StreamAttempt, Offer]] = []

    def offer(self, offer: Offer) -> None:
        """The attempt is open: send it when its turn comes."""
        self._waiting.put(offer, priority=offer.priority, tenant=offer.tenant, run=offer.stream)

    def back(self, offer: Offer, now_s: float) -> None:
        """`next` gave it, and it could not go out: its turn has come already."""
        if offer.key in self._sent:
            self.lost(offer.key, now_s)
        else:
            self._back.append(offer)

    def settled(self, key: StreamAttempt) -> None:
        """The attempt is claimed or closed: it leaves the window."""
        self._sent.pop(key, None)
        self._unserved.pop(key, None)

    def unserved(self, offer: Offer, now_s: float) -> None:
        """A process does not serve it: leave the window, send it again after a growing delay."""
        self._sent.pop(offer.key, None)
        times = self._unserved[offer.key] = self._unserved.get(offer.key, 0) + 1
        heappush(self._due, (now_s + grown(UNSERVED_S, times - 1), offer.key, offer))

    def next(self, now_s: float) -> Offer | None:
        """The next offer to send now. What goes out again is in the window already, or has left it; the rest waits
        while the window or its tenant is full."""
        self._collect_due(now_s)
        while self._again:
            offer = self._again.popleft()
            if offer.key in self._sent or not self._tenants.is_full(offer.tenant):
                return offer
            self.offer(offer)
        if len(self._sent) >= self._window:
            return None
        while self._back:
            offer = self._back.popleft()
            if not self._tenants.is_full(offer.tenant):
                return offer
            self.offer(offer)
        if not self._waiting:
            return None
        full, is_left = self._waiting.set_aside(self._tenants.is_full)
        for tenant in full:
            self._tenants.set_aside(tenant, self._lane)
        return self._waiting.pop() if is_left else None

    def wake(self, tenant: str) -> None:
        """The tenant has a place again: what was held back of it waits for its turn."""
        if self._waiting.wake(tenant):
            self._tenants.set_aside(tenant, self._lane)

    def lost(self, key: StreamAttempt, now_s: float) -> None:
        """Whoever took it is gone: unless it is settled, send it again now."""
        sent = self._sent.get(key)
        if sent is not None:
            self._sent[key] = sent._replace(due_s=now_s)
            heappush(self._due, (now_s, key, sent.offer))

    def sent(self, offer: Offer, now_s: float) -> None:
        """It went out; unless it is claimed in time it goes out again, later each time."""
        before = self._sent.get(offer.key)
        times = 1 if before is None else before.times + 1
        due_s = now_s + grown(self._schedule_to_start_s, times - 1)
        self._sent[offer.key] = _Out(times, due_s, offer)
        if times == 1:
            self._first.append((due_s, offer))
        else:
            heappush(self._due, (due_s, offer.key, offer))

    def withdraw(self, key: StreamAttempt) -> bool:
        """It is not to be sent now: leave the window. True when it was sent before, so that it waits nowhere here."""
        was_sent, was_turned_down = self._sent.pop(key, None), self._unserved.pop(key, None)
        return was_sent is not None or was_turned_down is not None

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing is out: the lane may be forgotten."""
        return not (self._waiting or self._again or self._back or self._sent or self._unserved)

    def next_due_s(self) -> float | None:
        """When something has to be sent again, if anything."""
        dues = [due_s for due_s, _ in itertools.islice(self._first, 1)]
        dues += [due_s for due_s, _, _ in self._due[:1]]
        return min(dues, default=None)

    def _collect_due(self, now_s: float) -> None:
        while self._first and (self._first[0][0] <= now_s or self._first[0][1].key not in self._sent):
            due_s, offer = self._first.popleft()
            if self._is_due(offer, due_s):
                self._again.append(offer)
        while self._due and self._due[0][0] <= now_s:
            due_s, key, offer = heappop(self._due)
            if self._is_due(offer, due_s) or (key not in self._sent and key in self._unserved):
                self._again.append(offer)

    def _is_due(self, offer: Offer, due_s: float) -> bool:
        """Whether it is out, and has not been sent again meanwhile."""
        out = self._sent.get(offer.key)
        return out is not None and out.due_s == due_s


def grown(first_s: float, times: int) -> float:
    """Doubles each time, up to ten minutes."""
    return min(first_s * 2.0 ** min(times, 30), LONGEST_DELAY_S)
