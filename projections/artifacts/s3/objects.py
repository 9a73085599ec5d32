"""What lies in the bucket: every writing of a blob is an object of its own, ``<blob name>/<milliseconds>-<random>``.

An object is never written again, so its time of modification never changes. That is what makes `Blobs.remove` exact on
a service that has no step "remove if older": removing an object that was old can never remove what was written since.
The blob is the newest of its objects; the rest of them are superseded. ADR 15 has what else was considered.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec

from dagbok.events.log.clock import Clock

if TYPE_CHECKING:
    from obstore import ObjectMeta

_ENDING: Final = re.compile(r"[0-9]{13}-[0-9a-f]{16}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Written(msgspec.Struct, frozen=True):
    """One object. `modified_ms`: milliseconds since 1970 by the service's clock, which counts whole seconds."""

    name: str
    ending: str
    size_bytes: int
    modified_ms: int

    @property
    def key(self) -> str:
        """Its key below the prefix."""
        return f"{self.name}/{self.ending}"


def new_key(name: str, clock_ms: Clock) -> str:
    """A key that nothing has: its end is random. Later ones sort later, so that a listing that runs meets them."""
    return f"{name}/{clock_ms():013d}-{secrets.token_hex(8)}"


def written(found: ObjectMeta) -> Written | None:
    """An object of this store; none for what somebody else put into the bucket."""
    name, _, ending = found["path"].rpartition("/")
    if not name or _ENDING.fullmatch(ending) is None:
        return None
    return Written(name, ending, found["size"], (found["last_modified"] - _EPOCH) // timedelta(milliseconds=1))


def newest(objects: Iterable[Written]) -> Written | None:
    """The one that is the blob now. Within one second of the service the writers' clocks decide."""
    return max(objects, key=lambda item: (item.modified_ms, item.ending), default=None)


def by_blob(objects: Iterable[Written]) -> Iterator[list[Written]]:
    """The objects of each blob together, of a listing that is sorted by key."""
    for _, group in groupby(objects, key=lambda item: item.name):
        yield list(group)
