"""Which of the other processes are there, by their signs of life. No two clocks are compared: a process lives as long
as its number changes while this one looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dagbok.agents.queue.letters import Member

QUIET_S: Final = 2.0
"""So long without a sign of life, and it is asked whether a process is gone: it gives one a second."""

GONE_S: Final = 30.0
"""So long without a sign of life, and a process counts as gone, whatever it is doing."""


@dataclass(slots=True)
class _Seen:
    beat: int
    member: Member
    changed_s: float
    proven: bool


class Members:
    """`stale_s`: a process that gives no sign for so long rests. `is_gone`: whether a process is surely gone, asked of
    those that are quiet."""

    def __init__(self, stale_s: float, is_gone: Callable[[str], bool] | None) -> None:
        self._stale_s, self._is_gone = stale_s, is_gone
        self._seen: dict[str, _Seen] = {}
        self._buried: dict[str, int] = {}
        self._has_looked = False

    @property
    def known(self) -> bool:
        """Whether there is anybody."""
        return bool(self._seen)

    def saw(self, found: Mapping[str, tuple[int, Member]] | None, now_s: float) -> bool:
        """These are written down now, or there is no file; true when one of them says something new. Whoever is there
        at the first look may have died long ago and is proven by its next sign; who appears later lives."""
        if found is None:
            self._has_looked = True
            return False
        news = bool(self._seen.keys() - found.keys())
        for process in self._seen.keys() - found.keys():
            del self._seen[process]
        self._buried = {process: beat for process, beat in self._buried.items() if found.get(process, (-1,))[0] == beat}
        for process, (beat, member) in found.items():
            if process in self._buried:
                continue
            seen = self._seen.get(process)
            if seen is None:
                self._seen[process], news = _Seen(beat, member, now_s, self._has_looked), True
            elif seen.beat != beat:
                news = news or seen.member != member or not seen.proven
                self._seen[process] = _Seen(beat, member, now_s, True)
        self._has_looked = True
        return news

    def alive(self, now_s: float) -> dict[str, Member]:
        """Who gives signs of life."""
        living = [item for item in self._seen.items() if item[1].proven and not self._rests(item[1], now_s)]
        return {process: seen.member for process, seen in living}

    def resting(self, now_s: float) -> frozenset[str]:
        """Who gave none for a while."""
        return frozenset(process for process, seen in self._seen.items() if self._rests(seen, now_s))

    def bury(self, now_s: float) -> list[str]:
        """Forget who is gone, unless it shows up again; their ids."""
        gone = [process for process, seen in self._seen.items() if self._is_over(process, now_s - seen.changed_s)]
        for process in gone:
            self._buried[process] = self._seen.pop(process).beat
        return gone

    def _is_over(self, process: str, quiet_s: float) -> bool:
        if quiet_s >= QUIET_S and self._is_gone is not None and self._is_gone(process):
            return True
        return quiet_s >= GONE_S

    def _rests(self, seen: _Seen, now_s: float) -> bool:
        return now_s - seen.changed_s >= self._stale_s
