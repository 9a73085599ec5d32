"""The session of a task as its worker sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import orjson

from dagbok.agents.workers.sessions.beside import beside
from dagbok.agents.workers.sessions.difference import difference
from dagbok.agents.workers.sessions.growth import parts_to_keep
from dagbok.agents.workers.sessions.operations import (
    Operation,
    apply,
    built,
    decode_part,
    encode_part,
    joined,
    put,
    whole,
)
from dagbok.agents.workers.sessions.unread import copied, read
from dagbok.events.canonical import canonical, sha256_hex
from dagbok.events.envelope import SessionParts
from dagbok.events.run.values import ArtifactRef
from dagbok.events.session import NO_SESSION, session_digest

ReadPart = Callable[[ArtifactRef], bytes]
"""Gives the bytes of a part, proven by hash and length. Blocks; any thread."""


NOTHING: Final = object()
"""What a session has before it is first put down, which null is not."""


class PutDown(Protocol):
    """Writes a part to the log and comes back when that is decided."""

    def __call__(self, turn: int, keep: int, part: bytes) -> Awaitable[None]:
        """Raises `Refused` when this attempt may not, `Terminal` when the run takes no more."""
        ...


class TaskSession:
    """A JSON value that the worker of a task puts down as often as it likes, in `load` → work → `save` turns. The next
    attempt at the task goes on with what was put down last, on whichever machine it runs, however this one ends.

    `save` returns when the log has it. Only the running attempt writes, so a session is never gone on with twice."""

    def __init__(self, found: SessionParts | None, read: ReadPart, put_down: PutDown) -> None:
        self._read, self._put_down = read, put_down
        self._turn, self._digest = (found.turn, found.digest) if found else (0, NO_SESSION)
        self._refs = found.parts if found else ()
        self._parts: list[tuple[Operation, ...]] | None = None
        self._sizes = [ref.size_bytes for ref in self._refs]
        self._value: Any = None
        self._unread = True
        self._under_way = False
        self._writing = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def turn(self) -> int:
        """How often it was put down, over all attempts; 0: never."""
        return self._turn

    @property
    def digest(self) -> str:
        """Names its content and all that led to it; empty before the first turn."""
        return self._digest

    def load(self) -> Any:
        """A copy of what was put down last; none when nothing was. Blocks when it is first asked for.

        Raises `ArtifactDamaged`, `ArtifactNotFound`, or `InvalidInput` for a session of a later version."""
        return read(self._put_down_last())

    def load_unread(self) -> Any:
        """The same, but lists that were added to (`change`) are `Unread`: JSON that nobody has read yet. Costs little,
        however long they are."""
        return copied(self._put_down_last())

    async def fetch(self) -> Any:
        """`load` for async functions: reads beside the event loop what `load` would block it for."""
        await self._known_soon()
        return self.load()

    async def fetch_unread(self) -> Any:
        """`load_unread` for async functions."""
        await self._known_soon()
        return self.load_unread()

    async def save(self, value: object) -> None:
        """Put down a JSON value in place of what there is; only what differs is written. When nothing does, nothing is.

        Raises `InvalidInput` for what is no JSON value, `Refused` when the attempt is over, `Terminal` when the run
        takes no more bytes. A save that is cancelled goes on beside; the next one waits for it."""
        after = orjson.loads(canonical(value, "what a session keeps"))
        await self._change(lambda: _to(self._as_read(), after))

    async def change(self, operations: Sequence[Operation]) -> None:
        """Put down changes of what there is (`operations.put`, `operations.add` …): costs what is new, however much
        there is. Raises what `save` raises, and `InvalidInput` for a path that leads nowhere."""
        if operations:
            await self._change(lambda: operations)

    def save_blocking(self, value: object) -> None:
        """`save` for functions that are not async: from their thread. RuntimeError on the event loop of the attempt,
        which it would block for ever."""
        if self._loop is None:
            asyncio.run(self.save(value))
        elif _runs_here(self._loop):
            raise RuntimeError("save_blocking is for functions that are not async: await save(value) here")
        else:
            asyncio.run_coroutine_threadsafe(self.save(value), self._loop).result()

    def belongs_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop on which the attempt runs."""
        self._loop = loop

    async def _change(self, changes: Callable[[], Sequence[Operation]]) -> None:
        await beside(self._one_write(changes))

    async def _known_soon(self) -> list[tuple[Operation, ...]]:
        return await asyncio.to_thread(self._known) if self._parts is None and self._refs else self._known()

    def _known(self) -> list[tuple[Operation, ...]]:
        if self._parts is None:
            self._parts = [decode_part(self._read(ref)) for ref in self._refs]
            self._value = built(self._parts, unread=self._unread)
        return self._parts

    def _put_down_last(self) -> Any:
        """While a write goes on, the value is what it may become: the log has that of the parts."""
        parts = self._known()
        return built(parts, unread=self._unread) if self._under_way else self._value

    def _as_read(self) -> Any:
        """What there is, to be compared. Who saves whole values has read all of it, and will again."""
        if self._unread:
            self._unread, self._value = False, read(self._value)
        return self._value if self._turn else NOTHING

    async def _one_write(self, changes: Callable[[], Sequence[Operation]]) -> None:
        async with self._writing:
            parts = await self._known_soon()
            operations = changes()
            if not operations:
                return
            self._under_way = True
            try:
                self._value = apply(self._value, operations, unread=self._unread)
                await self._write(parts, operations)
            except BaseException:
                self._value = built(parts, unread=self._unread)
                raise
            finally:
                self._under_way = False

    async def _write(self, parts: list[tuple[Operation, ...]], operations: Sequence[Operation]) -> None:
        keep = parts_to_keep(self._sizes, len(encode_part(operations)))
        behind = tuple(joined([operation for part in parts[keep:] for operation in part] + list(operations)))
        if keep == 0:
            behind = whole(self._value)
        data = encode_part(behind)
        await self._put_down(self._turn + 1, keep, data)
        self._turn += 1
        self._digest = session_digest(self._digest, keep, sha256_hex(data))
        parts[keep:], self._sizes[keep:] = [behind], [len(data)]


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _to(before: Any, after: Any) -> Sequence[Operation]:
    return (put((), after),) if before is NOTHING else tuple(difference(before, after))
