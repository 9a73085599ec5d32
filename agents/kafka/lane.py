"""What came for one lane and is not done with: handed to its taker as far as that has free places, acknowledged as soon
as the log has its first word."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence

from dagbok.agents.queue.port import AttemptKey, Taker, attempt_of
from dagbok.events.envelope import CancelHint, Dispatch, Reply

Acknowledge = Callable[[], object]


class LaneIntake:
    """One lane of one process. `offer` waits while the taker is full, and with it whoever reads the topic: so a process
    never sits on more than it can begin."""

    def __init__(self) -> None:
        self.taker: Taker | None = None
        self._ready: OrderedDict[AttemptKey, Dispatch] = OrderedDict()
        self._keys: Counter[str] = Counter()
        self._unsettled: dict[AttemptKey, list[Acknowledge]] = {}
        self._filled = asyncio.Event()
        self._freed = asyncio.Condition()
        self._offered = 0
        self._telling: asyncio.Task[None] | None = None

    async def offer(self, dispatch: Dispatch, acknowledge: Acknowledge) -> None:
        """Take it in as soon as there is a place for it. `acknowledge` is called once it need not come again."""
        self._offered += 1
        try:
            async with self._freed:
                await self._freed.wait_for(lambda: self._has_place(dispatch.key))
        finally:
            self._offered -= 1
        key = attempt_of(dispatch)
        self._unsettled.setdefault(key, []).append(acknowledge)
        if key not in self._ready:
            self._keys[dispatch.key] += 1
        self._ready[key] = dispatch
        self._filled.set()

    async def take(self) -> Sequence[Dispatch]:
        """All that is ready, at least one; waits for it."""
        while not self._ready:
            self._filled.clear()
            await self._filled.wait()
        taken = tuple(self._ready.values())
        self._ready.clear()
        self._keys.clear()
        return taken

    def hinted(self, replies: Sequence[Reply]) -> None:
        """Nobody is to take these any more."""
        for hint in replies:
            if isinstance(hint, CancelHint):
                key = attempt_of(hint)
                dispatch = self._ready.pop(key, None)
                if dispatch is not None:
                    self._keys[dispatch.key] -= 1
                    self.settled(key)

    def settled(self, key: AttemptKey) -> None:
        """It need not come again."""
        for acknowledge in self._unsettled.pop(key, ()):
            acknowledge()

    def freed(self) -> None:
        """Whoever waits in `offer` looks again."""
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell())

    @property
    def unsettled(self) -> int:
        """How many attempts are here that would come again if this process died."""
        return len(self._unsettled)

    @property
    def is_busy(self) -> bool:
        """Something is here that is not done with, or waits for a place: whoever reads the topic has to wait."""
        return bool(self._offered or self._unsettled)

    async def _tell(self) -> None:
        async with self._freed:
            self._freed.notify_all()

    def _has_place(self, key: str) -> bool:
        """A key that nobody here serves needs no place: the taker turns it down."""
        if self.taker is None:
            return False
        places = self.taker.places()
        return key not in places or places[key] > self._keys[key]
