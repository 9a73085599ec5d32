"""A run as a context: what happens between `async with compositor.enter()` and its end."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from dagbok.agents.layers.failing import attach_snapshots, ending
from dagbok.agents.layers.owner import Owner
from dagbok.agents.layers.preparing import Made, Prepared
from dagbok.agents.layers.run import AnyRun
from dagbok.agents.layers.scopes import Scopes
from dagbok.agents.layers.snapshots.claims import SnapshotClaims, SnapshotUsed, claim

RunT = TypeVar("RunT", bound=AnyRun)


class Entering(Generic[RunT]):
    """Enters the layers of a run and leaves them. Used once: RuntimeError for a second time.

    All is checked, then the snapshot is taken, then layers are made: what was gone on with before makes nothing. Errors
    at the end are as `failing` says. After an entry that failed, `failing.own_snapshot_of(error)` has the snapshot.
    """

    _run: RunT
    _scopes: Scopes
    _owner: Owner | None = None

    def __init__(
        self,
        prepare: Callable[[], Prepared],
        make_run: Callable[[Made], RunT],
        claims: SnapshotClaims,
        cleanup_timeout_s: float,
    ) -> None:
        self._prepare, self._make_run = prepare, make_run
        self._claims, self._timeout_s = claims, cleanup_timeout_s
        self._used = False

    async def __aenter__(self) -> RunT:
        if self._used:
            raise RuntimeError("This entering was used before: call enter() for each run")
        self._used = True
        prepared = self._prepare()
        try:
            await claim(self._claims, prepared.parent)
            self._run = self._make_run(prepared.make())
        except SnapshotUsed:
            raise
        except BaseException as unmade:
            attach_snapshots(unmade, None, prepared.untouched())
            raise
        self._scopes = Scopes(self._run.slots, self._run.dropped)
        if self._scopes.are_idle():
            await self._scopes.enter()
            self._scopes.begins()
            return self._run
        self._owner = Owner(self._scopes, self._timeout_s)
        failed = await self._owner.enter()
        error = ending(None, failed)
        if error is not None:
            self._run.end_unentered()
            attach_snapshots(error, self._run.session_snapshot, self._run.snapshot)
            raise error
        self._scopes.begins()
        return self._run

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        of_body = error if self._owner is None else self._owner.of_body(error)
        leaving = self._scopes if self._owner is None else self._owner
        errors = await leaving.leave(of_body)
        self._run.end()
        found = ending(of_body, errors)
        if found is not None and found is not error:
            raise found
