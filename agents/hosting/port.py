"""What `Dagbok` needs of the process that it lives in, whatever log is behind it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from dagbok.agents.hosting.watching import Committed, Watcher
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.events.envelope import Answer, Command
from dagbok.projections.task_graph.state import RunState

if TYPE_CHECKING:
    from dagbok.projections.queries import Queries

T = TypeVar("T")


class FreshTables(Protocol):
    """The tables for whoever asks them now and then."""

    async def fresh(self) -> Queries:
        """Queries that see everything that this process was answered, or more."""
        ...


class Commits(Protocol):
    """The commits of one run in order, read from the log."""

    async def more(self) -> Sequence[Committed]:
        """The next ones; empty when there are none yet."""
        ...


class Host(Protocol):
    """A process that asks, looks and perhaps works and decides. Of the event loop that opened it."""

    @property
    def reader(self) -> ArtifactReader:
        """Where the bytes of artifacts are."""
        ...

    @property
    def tables(self) -> FreshTables:
        """What answers questions about many runs."""
        ...

    async def ask(self, command: Command) -> Answer:
        """Send a client's command and wait for its answer, whichever process decides it. A refusal says why, also when
        the command was refused before."""
        ...

    def find(self, stream: str) -> RunState | None:
        """A run as it stands, to be shown. Blocks while a run that nobody has looked at is read."""
        ...

    def confirmed(self, stream: str) -> AbstractAsyncContextManager[RunState | None]:
        """A run when everything in it is surely in the log, at least as new as what this process was answered."""
        ...

    def watch(self, stream: str, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` whenever something of a run is confirmed, once it was looked at; the result ends it."""
        ...

    async def first(self, wanted: Coroutine[object, object, T]) -> T:
        """The result of `wanted`, unless the host fails or closes first: then its error."""
        ...

    def history(self, stream: str, after: int) -> Commits | None:
        """The commits that have the events of a run with a number above `after`, perhaps with some before; none when
        the tables tell them, which may be behind for a moment."""
        ...

    def check_pool(self, pool: str) -> None:
        """Raises `InvalidInput` (`invalid_spec`) for a pool that nobody can ever serve here."""
        ...

    def served_pools(self) -> frozenset[str] | None:
        """The pools that some process serves; none when that cannot be known."""
        ...
