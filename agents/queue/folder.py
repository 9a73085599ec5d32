"""The queue between the processes of one data folder.

Within a process everything stays in memory. The file `queue.db` carries what another process is to have: dispatches
that it has a free place for, and replies to addresses where nobody listens here. A process that is alone writes nothing
into it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from dagbok.agents.queue.letters import Inbound, Member, Outbound, Serves
from dagbok.agents.queue.members import Members
from dagbok.agents.queue.memory import MemoryQueue
from dagbok.agents.queue.port import AttemptKey, Lane, Listener, Taker, attempt_of, lane_address
from dagbok.agents.queue.post import Post
from dagbok.agents.queue.sharing import OnLost, Sharing
from dagbok.agents.queue.sqlite_exchange import Exchange
from dagbok.agents.queue.sqlite_file import QueueFile
from dagbok.agents.queue.transport import decoded
from dagbok.events.envelope import CancelHint, Dispatch, Reply
from dagbok.projections.artifacts.port import ArtifactStore

STALE_S: Final = 4.0
"""A process that has given no sign of life for so long is handed nothing; it gives one a second."""

BUSY_TIMEOUT_S: Final = 0.25
SAY_AFTER_S: Final = 0.002


class FolderQueue:
    """Implements `SharedQueue` on `queue.db`; may lose and repeat. `process` is the id of this process; large
    dispatches lie in `store` (see `transport.py`).

    The one that puts is the owner of the folder; any number of processes take. `start` lets this process notice others,
    `join` lets others notice it: a process that is not the owner joins before it sends its first command. An address
    belongs to one process, but for those of lanes. Nothing here raises because of the file: what cannot be written is
    logged and dropped, and a damaged or deleted file is made anew.
    """

    def __init__(
        self,
        path: Path,
        process: str,
        store: ArtifactStore,
        *,
        is_gone: Callable[[str], bool] | None = None,
        on_lost: OnLost | None = None,
        stale_s: float = STALE_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_gone`: whether a process has surely ended; without it that takes half a minute. `on_lost` is told which
        attempts a process had been handed when it ended; some of them may be unclaimed. `now_s` is monotonic."""
        self._memory = MemoryQueue()
        self._members = Members(stale_s, is_gone)
        self._sharing = Sharing(self._memory, self._members, process, on_lost)
        self._now_s = now_s
        self._heard: tuple[str, int] = ("", 0)
        file = QueueFile(path, BUSY_TIMEOUT_S)
        self._post = Post(file, Exchange(file, process, self._sharing.sender, store), self, now_s)
        self._sharing.use(self._post)

    async def start(self) -> None:
        """Begin to notice other processes."""
        self._post.start()

    async def join(self) -> None:
        """Have others notice this process, until it closes. Idempotent. After it returns, replies to addresses of this
        process reach it."""
        await self._post.join()

    async def close(self) -> None:
        """Tell the others that this process is gone. Idempotent."""
        await self._post.close()

    def takers(self, lane: Lane) -> frozenset[str]:
        """The other processes that this one, which puts, knows to serve a lane."""
        shares = self._sharing.shares.get(lane)
        return frozenset() if shares is None else shares.takers

    # The port:

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        self._sharing.put(lane, dispatches, self._now_s())

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        return await self._memory.take(lane)

    def hint(self, lane: Lane, hints: Sequence[CancelHint]) -> None:
        self._memory.hint(lane, hints)
        self._sharing.drop(lane, [attempt_of(hint) for hint in hints])
        if self._members.known:
            self._send_replies(lane_address(lane), hints)

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        if address in self._memory.addresses:
            self._memory.reply(address, replies)
        elif self._post.may_be_heard:
            self._send_replies(address, replies)

    def listen(self, address: str, listener: Listener) -> None:
        self._memory.listen(address, listener)

    def forget(self, address: str, listener: Listener) -> None:
        self._memory.forget(address, listener)

    def serve(self, lane: Lane, taker: Taker) -> None:
        self._sharing.takers[lane] = taker
        self._post.say()
        self.freed(lane)

    def freed(self, lane: Lane) -> None:
        if self._sharing.sends:
            self._sharing.freed(lane)
        else:
            self._post.say(SAY_AFTER_S)

    def settled(self, lane: Lane, key: AttemptKey) -> None:
        """Of a process that dies, its lock tells; what it had is offered again whether it was settled or not."""

    def leave(self, lane: Lane) -> None:
        taker = self._sharing.takers.pop(lane, None)
        waiting = [*(taker.give_back() if taker is not None else ()), *self._memory.take_back(lane)]
        if self._sharing.sends and waiting:
            self.put(lane, waiting)
        self._post.say()

    # The desk of the post:

    def member(self) -> Member:
        """What this process says of itself. Who puts takes from no other."""
        takers = {} if self._sharing.sends else self._sharing.takers
        serves = tuple([self._serves(lane, taker) for lane, taker in takers.items()])
        return Member(sender=self._heard[0], seen=self._heard[1], serves=serves)

    def has_company(self) -> bool:
        """Whether another process takes part."""
        return self._members.known

    def received(self, found: Inbound, out: Outbound, now_s: float) -> None:
        """Deliver what came in; work first, so that a hint finds what it is about."""
        if found.seen:
            self._heard = (found.sender, found.seen)
            self._post.say(SAY_AFTER_S)
        for lane, work in groupby(found.work, key=lambda item: item[0]):
            if lane in self._sharing.takers:
                self._memory.put(lane, [dispatch for _, dispatch in work])
        self._deliver(found.replies)
        news = self._members.saw(found.members, now_s)
        if news and self._sharing.sends:
            self._post.stir()
        self._sharing.received(found, out, now_s, news=news)

    def returned(self, out: Outbound) -> None:
        """What could not be written waits again."""
        self._sharing.returned(out)

    def _serves(self, lane: Lane, taker: Taker) -> Serves:
        return Serves(*lane, {key: max(free, 0) for key, free in self._sharing.places(lane, taker).items()})

    def _send_replies(self, address: str, replies: Sequence[Reply]) -> None:
        self._post.out.replies += [(address, reply) for reply in replies]
        self._post.soon()

    def _deliver(self, replies: Sequence[tuple[str, bytes]]) -> None:
        lanes = {lane_address(lane): lane for lane in self._sharing.takers}
        heard = [reply for reply in replies if reply[0] in self._memory.addresses or reply[0] in lanes]
        for address, group in groupby(heard, key=lambda item: item[0]):
            messages = list(decoded([value for _, value in group], address))
            if (lane := lanes.get(address)) is not None:
                self._memory.hint(lane, [reply for reply in messages if isinstance(reply, CancelHint)])
            else:
                self._memory.reply(address, messages)
