"""The queue between the processes of one data folder.

Within a process everything stays in memory. The file `queue.db` carries what another process is to have: dispatches
that it has a free place for, and replies to addresses where nobody listens here. A process that is alone writes nothing
into it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from dagbok.agents.queue.letters import Inbound, Member, Outbound, Serves
from dagbok.agents.queue.members import Members
from dagbok.agents.queue.memory import MemoryQueue
from dagbok.agents.queue.port import AttemptKey, Lane, Listener, Taker, attempt_of, lane_address
from dagbok.agents.queue.post import BEAT_S, Post
from dagbok.agents.queue.shares import Letter, Shares
from dagbok.agents.queue.sqlite_exchange import Exchange
from dagbok.agents.queue.sqlite_file import QueueFile
from dagbok.agents.queue.transport import decoded
from dagbok.events.envelope import CancelHint, Dispatch, Reply
from dagbok.projections.artifacts.port import ArtifactStore

STALE_S: Final = 4.0
"""A process that has given no sign of life for so long is handed nothing; it gives one a second."""

BUSY_TIMEOUT_S: Final = 0.25
SAY_AFTER_S: Final = 0.002

OnLost = Callable[[Lane, Sequence[AttemptKey]], None]


class FolderQueue:
    """Implements `SharedQueue` on `queue.db`; may lose and repeat. `process` is the id of this process; large
    dispatches lie in `store` (see `transport.py`).

    The one that puts is the owner of the folder; any number of processes take. `start` lets this process notice others,
    `join` lets others notice it: a process that is not the owner joins before it sends its first command. An address
    belongs to one process, but for those of lanes. `on_lost` is told which attempts a process had been handed when it
    ended; some of them may be unclaimed. Nothing here raises because of the file: what cannot be written is logged and
    dropped, and a damaged or deleted file is made anew.
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
        """`is_gone`: whether a process has surely ended; without it that takes half a minute. `now_s` is monotonic."""
        self._memory = MemoryQueue()
        self._takers: dict[Lane, Taker] = {}
        self._shares: dict[Lane, Shares] = {}
        self._members = Members(stale_s, is_gone)
        self._now_s = now_s
        self.on_lost = on_lost
        self._sender = f"{process}/{secrets.token_hex(4)}"
        self._next_number = 1
        self._sends = False
        self._heard: tuple[str, int] = ("", 0)
        self._reviewed_s = 0.0
        self._allotting: set[Lane] = set()
        file = QueueFile(path, BUSY_TIMEOUT_S)
        self._post = Post(file, Exchange(file, process, self._sender, store), self, now_s)

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
        shares = self._shares.get(lane)
        return frozenset() if shares is None else shares.takers

    # The port:

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        if not self._sends:
            self._sends = True
            self._review(self._now_s())
        shares = self._shares.get(lane)
        if shares is None:
            self._memory.put(lane, dispatches)
        else:
            shares.put(dispatches)
            self._allot(lane)

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        return await self._memory.take(lane)

    def hint(self, lane: Lane, hints: Sequence[CancelHint]) -> None:
        self._memory.hint(lane, hints)
        if (shares := self._shares.get(lane)) is not None:
            self._unsend(shares.drop([attempt_of(hint) for hint in hints]))
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
        self._takers[lane] = taker
        self._post.say()
        self.freed(lane)

    def freed(self, lane: Lane) -> None:
        if (shares := self._shares.get(lane)) is not None:
            if shares.waits:
                self._allot_soon(lane)
        elif not self._sends:
            self._post.say(SAY_AFTER_S)

    def leave(self, lane: Lane) -> None:
        taker = self._takers.pop(lane, None)
        waiting = [*(taker.give_back() if taker is not None else ()), *self._memory.take_back(lane)]
        if self._sends and waiting:
            self.put(lane, waiting)
        self._post.say()

    # Sharing:

    def _review(self, now_s: float) -> None:
        """Who takes part in which lane now. Only who puts cares."""
        self._reviewed_s = now_s
        self._post.out.dead += self._members.bury(now_s)
        serving = _by_lane(self._members.alive(now_s), self._sender)
        resting = self._members.resting(now_s)
        for lane in {*self._shares, *serving}:
            shares = self._shares.get(lane) or self._share(lane)
            takers = serving.get(lane, {})
            for taker in shares.takers - takers.keys():
                if taker in resting:
                    self._unsend(shares.rests(taker))
                elif (lost := shares.gone(taker)) and self.on_lost is not None:
                    self.on_lost(lane, lost)
            for taker, (places, seen) in takers.items():
                shares.said(taker, places, seen)
            if not shares.takers:
                del self._shares[lane]
                self._memory.put(lane, shares.take_back())

    def _share(self, lane: Lane) -> Shares:
        """The first other taker has come: what this process has not begun is for everybody."""
        shares = self._shares[lane] = Shares()
        if (taker := self._takers.get(lane)) is not None:
            shares.put(taker.give_back())
        shares.put(self._memory.take_back(lane))
        return shares

    def _allot(self, lane: Lane) -> None:
        self._allotting.discard(lane)
        shares = self._shares.get(lane)
        if shares is None or not shares.waits:
            return
        taker = self._takers.get(lane)
        here = None if taker is None else self._places(lane, taker)
        mine, letters = shares.allot(here, self._next_number, others=self._post.usable)
        self._next_number += len(letters)
        if mine:
            self._memory.put(lane, mine)
        if letters:
            self._post.out.letters += [(lane, letter) for letter in letters]
            self._post.soon()

    def _allot_soon(self, lane: Lane) -> None:
        if lane not in self._allotting:
            self._allotting.add(lane)
            asyncio.get_running_loop().call_soon(self._allot, lane)

    def _places(self, lane: Lane, taker: Taker) -> Mapping[str, int]:
        """What waits for the taker in memory has its places already."""
        places = dict(taker.places())
        for dispatch in self._memory.waiting(lane):
            if dispatch.key in places:
                places[dispatch.key] -= 1
        return places

    def _unsend(self, letters: Sequence[Letter]) -> None:
        numbers = {letter.number for letter in letters}
        if not numbers:
            return
        out = self._post.out
        out.unsent += letters
        out.letters = [(lane, letter) for lane, letter in out.letters if letter.number not in numbers]
        self._post.soon()

    def _send_replies(self, address: str, replies: Sequence[Reply]) -> None:
        self._post.out.replies += [(address, reply) for reply in replies]
        self._post.soon()

    # The desk of the post:

    def member(self) -> Member:
        """What this process says of itself."""
        serves = () if self._sends else tuple([self._serves(*item) for item in self._takers.items()])
        return Member(sender=self._heard[0], seen=self._heard[1], serves=serves)

    def _serves(self, lane: Lane, taker: Taker) -> Serves:
        return Serves(*lane, {key: max(free, 0) for key, free in self._places(lane, taker).items()})

    def has_company(self) -> bool:
        """Whether another process takes part."""
        return self._members.known

    def received(self, found: Inbound, out: Outbound, now_s: float) -> None:
        """Deliver what came in; work first, so that a hint finds what it is about."""
        news = self._members.saw(found.members, now_s)
        for lane, letter in found.lost:
            if (shares := self._shares.get(lane)) is not None:
                shares.drop((attempt_of(letter.dispatch),))
        if found.anew:
            self._resend(out)
        if found.seen:
            self._heard = (found.sender, found.seen)
            self._post.say(SAY_AFTER_S)
        for lane, work in groupby(found.work, key=lambda item: item[0]):
            if lane in self._takers:
                self._memory.put(lane, [dispatch for _, dispatch in work])
        self._deliver(found.replies)
        if self._sends and (news or now_s - self._reviewed_s >= BEAT_S):
            if news:
                self._post.stir()
            self._review(now_s)
        for lane in tuple(self._shares):
            self._allot(lane)

    def returned(self, out: Outbound) -> None:
        """What could not be written waits again, for this process or for better times."""
        for lane, letter in out.letters:
            if (shares := self._shares.get(lane)) is not None:
                shares.returned((letter,))
        for lane in tuple(self._shares):
            self._allot(lane)

    def _deliver(self, replies: Sequence[tuple[str, bytes]]) -> None:
        lanes = {lane_address(lane): lane for lane in self._takers}
        heard = [reply for reply in replies if reply[0] in self._memory.addresses or reply[0] in lanes]
        for address, group in groupby(heard, key=lambda item: item[0]):
            messages = list(decoded([value for _, value in group], address))
            if (lane := lanes.get(address)) is not None:
                self._memory.hint(lane, [reply for reply in messages if isinstance(reply, CancelHint)])
            else:
                self._memory.reply(address, messages)

    def _resend(self, out: Outbound) -> None:
        """The file is another one: what was in it is lost, but for what was just written."""
        written = {letter.number for _, letter in out.letters}
        for shares in self._shares.values():
            shares.returned([letter for letter in shares.unseen() if letter.number not in written])


def _by_lane(alive: Mapping[str, Member], sender: str) -> dict[Lane, dict[str, tuple[Mapping[str, int], int]]]:
    """By lane and process, its free places and the number of the last letter of `sender` that it has seen."""
    found: dict[Lane, dict[str, tuple[Mapping[str, int], int]]] = {}
    for process, member in alive.items():
        for serves in member.serves:
            seen = member.seen if member.sender == sender else 0
            found.setdefault(serves.lane, {})[process] = (serves.places, seen)
    return found
