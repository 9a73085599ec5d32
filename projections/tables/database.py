"""A database of the tables: opened, with its transactions and errors. What is special to one stands in `sqlite.py` and
`postgres.py`; everything else in `projections/` is the same for both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import msgspec
import sqlalchemy as sa

from dagbok.events.errors import StorageFailed

BUSY_TIMEOUT_S: Final = 10.0
"""How long a transaction waits for the lock of another one before it gives up."""

_SAID_CHARS: Final = 200


class Database(ABC):
    """May be used from any thread, and by several processes at once. `shown` names it to people, without passwords."""

    shown: str

    @property
    @abstractmethod
    def dialect(self) -> sa.Dialect:
        """The SQL that it speaks."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that writes. Raises `StorageFailed`."""

    @abstractmethod
    def reading(self, *, prepared: bool = True) -> AbstractContextManager[sa.Connection]:
        """A transaction that reads one snapshot: of the rows, and of which tables are the live ones. `prepared`: the
        table `views` is there. Raises `StorageFailed`."""

    @abstractmethod
    def prepare(self, connection: sa.Connection) -> None:
        """Inside a transaction that writes: from here on to its end, nobody else creates tables. There is a place for
        them now."""

    @abstractmethod
    def lock_versions(self, connection: sa.Connection, *, replacing: bool) -> None:
        """Inside a transaction that writes: from here on to its end, nobody else begins or ends a version of a view.
        `replacing`: also, nobody who reads is between learning which tables are live and reading them."""

    @abstractmethod
    def try_alone(self) -> Callable[[], None] | None:
        """Be the one who builds versions of views, until what comes back is called or this process ends. None: another
        one is. It keeps nobody from anything: it saves building the same thing twice. Raises `StorageFailed`."""

    @abstractmethod
    def table_names(self, connection: sa.Connection) -> set[str]:
        """The tables that are there."""

    @abstractmethod
    def damaged(self, cause: object) -> StorageFailed:
        """The tables are not what was written into them."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections. Idempotent."""

    @abstractmethod
    def _explain(self, error: sa.exc.DBAPIError) -> StorageFailed:
        """What an error of the driver means for whoever meets it."""

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of the database into `StorageFailed`, which says what to do."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._explain(error) from error
        except (UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise self.damaged(error) from error
        except sa.exc.TimeoutError as error:
            raise StorageFailed(
                f"{self.shown}: all connections are in use", advice="ask less at once, or open more connections"
            ) from error


def in_one_line(cause: object) -> str:
    """What a driver said, short and printable."""
    return " ".join(ascii(str(cause))[1:-1].replace("\\n", " ").split())[:_SAID_CHARS]
