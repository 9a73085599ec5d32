"""One lane of a pool: what waits, what was sent and not claimed, and when to send it again."""

from __future__ import annotations

import itertools
from collections import deque
from heapq import heappop, heappush

import msgspec

from dagbok.agents.scheduler.dispatch.fair import FairQueue

WINDOW = 256
"""How many attempts of a lane may be sent and not claimed: claims clock the sending."""

SCHEDULE_TO_START_S = 30.0
UNSERVED_S = 1.0
LONGEST_DELAY_S = 600.0


AttemptKey = tuple[str, str, int]
"""Stream of the run, task, epoch."""


class Offer(msgspec.Struct, frozen=True, gc=False):
    """An open attempt to be sent: its run's stream, its task and epoch, and how it is ordered."""

    stream: str
    task: str
    epoch: int
    tenant: str
    priority: int

    @property
    def key(self) -> AttemptKey:
        """What names the attempt."""
        return self.stream, self.task, self.epoch


class LaneState:
    """Times are seconds of a monotonic clock that the caller reads."""

    def __init__(self, window: int = WINDOW, schedule_to_start_s: float = SCHEDULE_TO_START_S) -> None:
        self._window = window
        self._schedule_to_start_s = schedule_to_start_s
        self._waiting: FairQueue[Offer] = FairQueue()
        self._again: deque[Offer] = deque()
        self._sent: dict[AttemptKey, int] = {}
        self._unserved: dict[AttemptKey, int] = {}
        # First sends come due in the order in which they went out, and most are settled long before: a queue forgets
        # those
        # at once. Only what goes out again needs a heap.
        self._first: deque[tuple[float, Offer]] = deque()
        self._due: list[tuple[float, AttemptKey, Offer]] = []

    def offer(self, offer: Offer) -> None:
        """The attempt is open: send it when its turn comes."""
        self._waiting.put(offer, priority=offer.priority, tenant=offer.tenant, run=offer.stream)

    def settled(self, key: AttemptKey) -> None:
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
        while the window is full."""
        self._collect_due(now_s)
        if self._again:
            return self._again.popleft()
        if not self._waiting or len(self._sent) >= self._window:
            return None
        return self._waiting.pop()

    def sent(self, offer: Offer, now_s: float) -> None:
        """It went out; unless it is claimed in time it goes out again, later each time."""
        times = self._sent[offer.key] = self._sent.get(offer.key, 0) + 1
        due_s = now_s + grown(self._schedule_to_start_s, times - 1)
        if times == 1:
            self._first.append((due_s, offer))
        else:
            heappush(self._due, (due_s, offer.key, offer))

    def withdraw(self, key: AttemptKey) -> bool:
        """It is not to be sent now: leave the window. True when it was sent before, so that it waits nowhere here."""
        was_sent, was_turned_down = self._sent.pop(key, None), self._unserved.pop(key, None)
        return was_sent is not None or was_turned_down is not None

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing is out: the lane may be forgotten."""
        return not (self._waiting or self._again or self._sent or self._unserved)

    def next_due_s(self) -> float | None:
        """When something has to be sent again, if anything."""
        dues = [due_s for due_s, _ in itertools.islice(self._first, 1)]
        dues += [due_s for due_s, _, _ in self._due[:1]]
        return min(dues, default=None)

    def _collect_due(self, now_s: float) -> None:
        while self._first and (self._first[0][0] <= now_s or self._first[0][1].key not in self._sent):
            offer = self._first.popleft()[1]
            if offer.key in self._sent:
                self._again.append(offer)
        while self._due and self._due[0][0] <= now_s:
            offer = heappop(self._due)[2]
            if offer.key in self._sent or offer.key in self._unserved:
                self._again.append(offer)


def grown(first_s: float, times: int) -> float:
    """Doubles each time, up to ten minutes."""
    return min(first_s * 2.0 ** min(times, 30), LONGEST_DELAY_S)
