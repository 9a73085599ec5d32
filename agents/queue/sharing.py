"""How the process that puts shares the lanes that other processes serve too: what waits for a place, who takes part,
and what is on its way to them. A lane that nobody else serves is none of its business."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence

from dagbok.agents.queue.letters import Inbound, Member, Outbound
from dagbok.agents.queue.members import Members
from dagbok.agents.queue.memory import MemoryQueue
from dagbok.agents.queue.port import AttemptKey, Lane, Taker, attempt_of
from dagbok.agents.queue.post import BEAT_S, Post
from dagbok.agents.queue.shares import Letter, Shares
from dagbok.events.envelope import Dispatch

OnLost = Callable[[Lane, Sequence[AttemptKey]], None]
"""Told which attempts of a lane a process had been handed that is gone; some of them may be unclaimed."""


class Sharing:
    """`takers` are those of this process by lane; what they are handed goes through `memory`. `sends`: whether this
    process has ever put anything; one that has not shares nothing."""

    def __init__(self, memory: MemoryQueue, members: Members, process: str, on_lost: OnLost | None) -> None:
        self._memory, self._members = memory, members
        self.takers: dict[Lane, Taker] = {}
        self.shares: dict[Lane, Shares] = {}
        self.sends = False
        self.sender = f"{process}/{secrets.token_hex(4)}"
        self.on_lost = on_lost
        self._post: Post | None = None
        self._next_number = 1
        self._reviewed_s = 0.0
        self._allotting: set[Lane] = set()

    def use(self, post: Post) -> None:
        """What goes to others goes by this post."""
        self._post = post

    def put(self, lane: Lane, dispatches: Sequence[Dispatch], now_s: float) -> None:
        """To this process, or to whom has a free place."""
        if not self.sends:
            self.sends = True
            self._review(now_s)
        shares = self.shares.get(lane)
        if shares is None:
            self._memory.put(lane, dispatches)
        else:
            shares.put(dispatches)
            self._allot(lane)

    def drop(self, lane: Lane, attempts: Iterable[AttemptKey]) -> None:
        """These are closed: nobody gets them any more."""
        if (shares := self.shares.get(lane)) is not None:
            self._unsend(shares.drop(attempts))

    def freed(self, lane: Lane) -> None:
        """The taker of this process has more places than before."""
        shares = self.shares.get(lane)
        if shares is not None and shares.waits and lane not in self._allotting:
            self._allotting.add(lane)
            asyncio.get_running_loop().call_soon(self._allot, lane)

    def places(self, lane: Lane, taker: Taker) -> Mapping[str, int]:
        """Free places of a taker of this process; what waits for it in memory has its own already."""
        places = dict(taker.places())
        for dispatch in self._memory.waiting(lane):
            if dispatch.key in places:
                places[dispatch.key] -= 1
        return places

    def received(self, found: Inbound, out: Outbound, now_s: float, *, news: bool) -> None:
        """`out` is written, `found` was read; `news`: somebody says something new of himself."""
        for lane, letter in found.lost:
            if (shares := self.shares.get(lane)) is not None:
                shares.drop((attempt_of(letter.dispatch),))
        if found.anew:
            self._put_anew(out)
        if self.sends and (news or now_s - self._reviewed_s >= BEAT_S):
            self._review(now_s)
        self._allot_all()

    def returned(self, out: Outbound) -> None:
        """What could not be written waits again, for this process or for better times."""
        for lane, letter in out.letters:
            if (shares := self.shares.get(lane)) is not None:
                shares.returned((letter,))
        self._allot_all()

    def _review(self, now_s: float) -> None:
        """Who takes part in which lane now."""
        self._reviewed_s = now_s
        if self._post is not None:
            self._post.out.dead += self._members.bury(now_s)
        serving = _by_lane(self._members.alive(now_s), self.sender)
        resting = self._members.resting(now_s)
        for lane in {*self.shares, *serving}:
            shares = self.shares.get(lane) or self._share(lane)
            takers = serving.get(lane, {})
            for taker in shares.takers - takers.keys():
                if taker in resting:
                    self._unsend(shares.rests(taker))
                elif (lost := shares.gone(taker)) and self.on_lost is not None:
                    self.on_lost(lane, lost)
            for taker, (places, seen) in takers.items():
                shares.said(taker, places, seen)
            if not shares.takers:
                del self.shares[lane]
                self._memory.put(lane, shares.take_back())

    def _share(self, lane: Lane) -> Shares:
        """The first other taker has come: what this process has not begun is for everybody."""
        shares = self.shares[lane] = Shares()
        if (taker := self.takers.get(lane)) is not None:
            shares.put(taker.give_back())
        shares.put(self._memory.take_back(lane))
        return shares

    def _allot_all(self) -> None:
        for lane in tuple(self.shares):
            self._allot(lane)

    def _allot(self, lane: Lane) -> None:
        self._allotting.discard(lane)
        shares, post = self.shares.get(lane), self._post
        if shares is None or post is None or not shares.waits:
            return
        taker = self.takers.get(lane)
        here = None if taker is None else self.places(lane, taker)
        mine, letters = shares.allot(here, self._next_number, others=post.usable)
        self._next_number += len(letters)
        if mine:
            self._memory.put(lane, mine)
        if letters:
            post.out.letters += [(lane, letter) for letter in letters]
            post.soon()

    def _unsend(self, letters: Sequence[Letter]) -> None:
        numbers = {letter.number for letter in letters}
        if numbers and self._post is not None:
            out = self._post.out
            out.unsent += letters
            out.letters = [(lane, letter) for lane, letter in out.letters if letter.number not in numbers]
            self._post.soon()

    def _put_anew(self, out: Outbound) -> None:
        """The file is another one: what was in it is lost, but for what was just written."""
        written = {letter.number for _, letter in out.letters}
        for shares in self.shares.values():
            shares.returned([letter for letter in shares.unseen() if letter.number not in written])


def _by_lane(alive: Mapping[str, Member], sender: str) -> dict[Lane, dict[str, tuple[Mapping[str, int], int]]]:
    """By lane and process, its free places and the number of the last letter of `sender` that it has seen."""
    found: dict[Lane, dict[str, tuple[Mapping[str, int], int]]] = {}
    for process, member in alive.items():
        for serves in member.serves:
            seen = member.seen if member.sender == sender else 0
            found.setdefault(serves.lane, {})[process] = (serves.places, seen)
    return found
