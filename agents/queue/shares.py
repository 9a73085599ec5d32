"""Who gets what of a lane that several processes serve. No I/O: the tables of one lane, as the sender keeps them.

Every taker says how many places it has free, by key; what it was handed and has not seen yet takes one of them. An
attempt goes to the taker with the most free places, of equal ones to the one that has waited longest, and waits here
while nobody has any. So nobody is handed more than it can begin soon, equal takers get equal shares, and a slow one
is handed as much as it finishes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dagbok.agents.queue.port import AttemptKey, attempt_of
from dagbok.events.envelope import Dispatch

REMEMBERED: Final = 1024
"""So many attempts that a taker has seen are remembered, in case it dies with them unclaimed."""


class Letter(NamedTuple):
    """A dispatch to another process. `number` grows with every letter of a sender."""

    taker: str
    number: int
    dispatch: Dispatch


@dataclass(eq=False, slots=True)
class _Account:
    """`places`: what it said last; `handed`: what it had not seen when it said so."""

    name: str
    places: Mapping[str, int] = field(default_factory=dict)
    handed: dict[AttemptKey, Letter] = field(default_factory=dict)
    handed_by_key: Counter[str] = field(default_factory=Counter)
    seen: OrderedDict[AttemptKey, None] = field(default_factory=OrderedDict)
    turn: int = 0
    rests: bool = False

    def free(self, key: str) -> int:
        return self.places.get(key, 0) - self.handed_by_key[key]

    def hand(self, letter: Letter) -> None:
        self.handed[attempt_of(letter.dispatch)] = letter
        self.handed_by_key[letter.dispatch.key] += 1

    def drop(self, attempt: AttemptKey) -> Letter | None:
        letter = self.handed.pop(attempt, None)
        if letter is not None:
            self.handed_by_key[letter.dispatch.key] -= 1
        return letter

    def saw(self, number: int) -> None:
        for attempt, letter in tuple(self.handed.items()):
            if letter.number > number:
                return
            self.drop(attempt)
            self.seen[attempt] = None
        while len(self.seen) > REMEMBERED:
            self.seen.popitem(last=False)


class Shares:
    """One lane. The taker of this process is named `""` and is handed nothing in advance: `allot` is told its
    places."""

    def __init__(self) -> None:
        self._waiting: dict[str, OrderedDict[AttemptKey, Dispatch]] = {}
        self._key_of: dict[AttemptKey, str] = {}
        self._others: dict[str, _Account] = {}
        self._here = _Account("")
        self._turn = self._number = 0

    @property
    def takers(self) -> frozenset[str]:
        """The other processes that take part."""
        return frozenset(self._others)

    @property
    def waits(self) -> bool:
        """Whether anything waits for a place."""
        return bool(self._key_of)

    def put(self, dispatches: Iterable[Dispatch]) -> None:
        """Have these wait for a place, but for those that somebody has been handed and not yet seen."""
        for dispatch in dispatches:
            attempt = attempt_of(dispatch)
            if any(attempt in account.handed for account in self._others.values()):
                continue
            self._key_of[attempt] = dispatch.key
            self._waiting.setdefault(dispatch.key, OrderedDict())[attempt] = dispatch

    def drop(self, attempts: Iterable[AttemptKey]) -> Sequence[Letter]:
        """These are closed: they wait no more. The letters that may still be on their way."""
        letters = []
        for attempt in attempts:
            self._forget(attempt)
            for account in self._others.values():
                account.seen.pop(attempt, None)
                if (letter := account.drop(attempt)) is not None:
                    letters.append(letter)
        return letters

    def said(self, taker: str, places: Mapping[str, int], seen: int) -> None:
        """Another process has so many free places now that it has seen every letter up to number `seen`."""
        account = self._others.setdefault(taker, _Account(taker))
        account.places, account.rests = places, False
        account.saw(seen)

    def rests(self, taker: str) -> Sequence[Letter]:
        """The process has given no sign of life for a while: it is handed nothing until it says something, and what it
        has not seen waits again. The letters that it had not seen."""
        account = self._others.get(taker)
        if account is None:
            return ()
        account.rests = True
        letters = tuple(account.handed.values())
        self.returned(letters)
        return letters

    def gone(self, taker: str) -> Sequence[AttemptKey]:
        """The process takes no more: what it has not seen waits again. What it has seen and may not have begun."""
        self.rests(taker)
        account = self._others.pop(taker, None)
        return () if account is None else tuple(account.seen)

    def unseen(self) -> Sequence[Letter]:
        """The letters that nobody has seen yet."""
        return [letter for account in self._others.values() for letter in account.handed.values()]

    def returned(self, letters: Iterable[Letter]) -> None:
        """These could not be sent: they wait again."""
        for letter in letters:
            account = self._others.get(letter.taker)
            if account is not None and account.handed.get(attempt_of(letter.dispatch)) == letter:
                account.drop(attempt_of(letter.dispatch))
                self.put((letter.dispatch,))

    def take_back(self) -> Sequence[Dispatch]:
        """Everything that waits: now it waits here no more."""
        waiting = [dispatch for line in self._waiting.values() for dispatch in line.values()]
        self._waiting.clear()
        self._key_of.clear()
        return waiting

    def allot(
        self, here: Mapping[str, int] | None, first_number: int, *, others: bool = True
    ) -> tuple[Sequence[Dispatch], Sequence[Letter]]:
        """What this process gets, and the letters to others, numbered from `first_number` on.

        `here`: the free places of this process, none when it takes nothing. `others`: whether letters can be sent.
        """
        self._number = first_number
        mine: list[Dispatch] = []
        letters: list[Letter] = []
        self._here.places, self._here.handed_by_key = here or {}, Counter()
        accounts = [*([self._here] if here is not None else []), *self._others.values()]
        for key in tuple(self._waiting):
            able = [account for account in accounts if key in account.places]
            # Nobody serves the key: somebody has to say so, and the scheduler shows it.
            takers = [taker for taker in able or accounts[:1] if taker is self._here or (others and not taker.rests)]
            self._allot_key(key, takers, mine, letters, anyway=not able)
        return mine, letters

    def _allot_key(
        self, key: str, takers: Sequence[_Account], mine: list[Dispatch], letters: list[Letter], *, anyway: bool
    ) -> None:
        line = self._waiting[key]
        while line and takers:
            taker = max(takers, key=lambda account: (account.free(key), -account.turn))
            if taker.free(key) <= 0 and not anyway:
                return
            attempt, dispatch = next(iter(line.items()))
            self._forget(attempt)
            self._turn += 1
            taker.turn = self._turn
            if taker is self._here:
                mine.append(dispatch)
                taker.handed_by_key[key] += 1
            else:
                letter = Letter(taker.name, self._number, dispatch)
                self._number += 1
                taker.hand(letter)
                letters.append(letter)

    def _forget(self, attempt: AttemptKey) -> None:
        key = self._key_of.pop(attempt, None)
        if key is not None:
            line = self._waiting[key]
            del line[attempt]
            if not line:
                del self._waiting[key]
