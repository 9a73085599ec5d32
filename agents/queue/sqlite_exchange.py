"""One exchange with `queue.db`: write what goes out, read what came in. Runs in the thread of the queue; blocks."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from dagbok.agents.queue.letters import MEMBER_VERSION, Inbound, Member, Outbound
from dagbok.agents.queue.port import Lane, lane_of
from dagbok.agents.queue.shares import Letter
from dagbok.agents.queue.sqlite_file import QueueFile, rows_of
from dagbok.agents.queue.transport import decode_dispatch, encode_dispatch, encode_reply
from dagbok.events.envelope import Dispatch
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import system_ms
from dagbok.events.run.values import AttemptKind
from dagbok.projections.artifacts.port import ArtifactStore

logger = structlog.get_logger(__name__)

KINDS: Final[dict[str, AttemptKind]] = {"work": "work", "verify": "verify"}
_decode_member: Final = msgspec.json.Decoder(Member).decode
_Row = tuple[str, int, str, str, str, bytes]


class Exchange:
    """`process` is who takes part here; `sender` names the letters of this object, of all that ever were."""

    def __init__(self, file: QueueFile, process: str, sender: str, store: ArtifactStore) -> None:
        self._file, self._process, self._sender, self._store = file, process, sender, store
        self._beat = 0
        self._read_replies = 0
        self._sent_before = self._opened_before = False

    def run(self, out: Outbound, anew: str | None) -> Inbound:
        """A damaged file is made anew, once; so is one that is to be, for the reason `anew`. Raises what SQLite or the
        system raises otherwise."""
        if anew is not None:
            self._file.make_anew(anew)
        try:
            return self._run(out)
        except Exception as error:
            if not self._file.is_damage(error):
                raise
            self._file.make_anew(str(error))
            found = self._run(out)
            found.anew = True
            return found

    def _run(self, out: Outbound) -> Inbound:
        found = Inbound()
        found.anew = self._file.open(create=out.member is not None)
        if not self._file.is_open:
            return found
        db = self._file.look()
        if found.anew:
            self._sent_before = False
            # Replies from before this process took part are not for it; a file that was made anew has none of those.
            self._read_replies = 0 if self._opened_before else _last_reply(db)
            self._opened_before = True
        letters = self._encoded(out.letters, found)
        found.members = self._members(db)
        work = rows_of(db, "SELECT id, sender, number, kind, pool, value FROM work WHERE taker = ?", (self._process,))
        work.sort(key=lambda row: _number(row[0]))
        if out.writes or work:
            self._file.write(lambda db: self._write(db, out, letters, work, bool(found.members)))
        self._work(work, found)
        found.replies = self._replies(db)
        return found

    def _write(
        self,
        db: sqlite3.Connection,
        out: Outbound,
        letters: Sequence[_Row],
        work: Sequence[tuple[object, ...]],
        heard: bool,
    ) -> None:
        if letters and not self._sent_before:
            # Whoever sent before decides no more.
            db.execute("DELETE FROM work WHERE sender != ?", (self._sender,))
            self._sent_before = True
        db.executemany("INSERT INTO work (sender, number, taker, kind, pool, value) VALUES (?, ?, ?, ?, ?, ?)", letters)
        gone = [(self._sender, letter.number) for letter in out.unsent]
        db.executemany("DELETE FROM work WHERE sender = ? AND number = ?", gone)
        if heard:
            now_ms = system_ms()
            replies = [(address, encode_reply(reply), now_ms) for address, reply in out.replies]
            db.executemany("INSERT INTO replies (address, value, put_ms) VALUES (?, ?, ?)", replies)
        db.executemany("DELETE FROM work WHERE id = ?", [(_number(row[0]),) for row in work])
        for process in (*out.dead, *([self._process] if out.leaves else [])):
            db.execute("DELETE FROM members WHERE process = ?", (process,))
            db.execute("DELETE FROM work WHERE taker = ?", (process,))
        if out.member is not None and not out.leaves:
            self._beat += 1
            values = (self._process, self._beat, msgspec.json.encode(out.member))
            db.execute("INSERT OR REPLACE INTO members (process, beat, state) VALUES (?, ?, ?)", values)

    def _encoded(self, letters: Sequence[tuple[Lane, Letter]], found: Inbound) -> list[_Row]:
        rows: list[_Row] = []
        for lane, letter in letters:
            try:
                value = encode_dispatch(letter.dispatch, self._store)
            except (DagbokError, OSError, msgspec.MsgspecError) as error:
                about = letter.dispatch
                logger.warning(
                    "queue.dispatch_lost", run=about.run, task=about.task, epoch=about.epoch, error=str(error)
                )
                found.lost.append((lane, letter))
            else:
                rows.append((self._sender, letter.number, letter.taker, *lane, value))
        return rows

    def _members(self, db: sqlite3.Connection) -> dict[str, tuple[int, Member]]:
        members = {}
        for process, beat, state in rows_of(
            db, "SELECT process, beat, state FROM members WHERE process != ?", (self._process,)
        ):
            try:
                member = _decode_member(_bytes(state))
                if member.v != MEMBER_VERSION:
                    raise msgspec.ValidationError(f"version {member.v}")
            except msgspec.MsgspecError as error:
                logger.warning("queue.member_undecodable", process=str(process)[:140], error=str(error))
                member = Member()
            members[str(process)] = (_number(beat), member)
        return members

    def _work(self, rows: Sequence[tuple[object, ...]], found: Inbound) -> None:
        for _, sender, number, kind, pool, value in rows:
            found.sender, found.seen = str(sender), _number(number)
            if (dispatch := self._decoded(value, found.sender, found.seen)) is not None:
                found.work.append((lane_of(KINDS.get(str(kind), dispatch.kind), str(pool)), dispatch))

    def _decoded(self, value: object, sender: str, number: int) -> Dispatch | None:
        try:
            return decode_dispatch(_bytes(value), self._store)
        except (DagbokError, OSError, msgspec.MsgspecError) as error:
            logger.warning("queue.dispatch_undecodable", sender=sender[:140], number=number, error=str(error))
            return None

    def _replies(self, db: sqlite3.Connection) -> list[tuple[str, bytes]]:
        """All of them: who listens where may change before they are delivered."""
        rows = rows_of(db, "SELECT id, address, value FROM replies WHERE id > ? ORDER BY id", (self._read_replies,))
        if rows:
            self._read_replies = _number(rows[-1][0])
        return [(str(address), _bytes(value)) for _, address, value in rows]


def _last_reply(db: sqlite3.Connection) -> int:
    return _number(rows_of(db, "SELECT coalesce(max(id), 0) FROM replies")[0][0])


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _bytes(value: object) -> bytes:
    """A cell that is no blob decodes as nothing."""
    return value if isinstance(value, bytes) else b""
