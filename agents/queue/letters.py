"""What one exchange with the file of the queue carries in both directions, and what a member says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from dagbok.agents.queue.port import Lane
from dagbok.agents.queue.shares import Letter
from dagbok.events.envelope import Dispatch, Reply
from dagbok.events.run.values import AttemptKind

MEMBER_VERSION: Final = 1


class Serves(msgspec.Struct, frozen=True):
    """A lane that a process serves, and its free places by key."""

    kind: AttemptKind
    pool: str
    places: dict[str, int]

    @property
    def lane(self) -> Lane:
        """The lane."""
        return self.kind, self.pool


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A process as it tells the others: `places` are those it has now that it has seen the letters of `sender` up to
    number `seen`."""

    v: int = MEMBER_VERSION
    sender: str = ""
    seen: int = 0
    serves: tuple[Serves, ...] = ()


@dataclass(slots=True)
class Outbound:
    """What is to be written. `member`: what to say of this process, if it takes part; `dead`: processes that are no
    more; `leaves`: this process is about to end."""

    letters: list[tuple[Lane, Letter]] = field(default_factory=list)
    unsent: list[Letter] = field(default_factory=list)
    replies: list[tuple[str, Reply]] = field(default_factory=list)
    member: Member | None = None
    dead: list[str] = field(default_factory=list)
    leaves: bool = False

    @property
    def writes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.letters or self.unsent or self.replies or self.member or self.dead or self.leaves)


@dataclass(slots=True)
class Inbound:
    """What was read. `members`: the other processes, each with the number of its last sign of life; none when there is
    no file. `sender` and `seen`: who sent the work, and the number of its last letter. `replies`: by address, to
    whomever, encoded. `lost`: letters that could not be encoded. `anew`: the file is another one than before, so that
    nothing that was written earlier is in it."""

    members: dict[str, tuple[int, Member]] | None = None
    work: list[tuple[Lane, Dispatch]] = field(default_factory=list)
    sender: str = ""
    seen: int = 0
    replies: list[tuple[str, bytes]] = field(default_factory=list)
    lost: list[tuple[Lane, Letter]] = field(default_factory=list)
    anew: bool = False
