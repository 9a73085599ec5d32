"""The tables in a schema of a PostgreSQL database: many processes on many machines (`docs/tables.md`).

Transactions that write take their locks in one order, so that none wait in a circle: who begins or ends versions
(advisory lock, then the table `views` when readers must be out of it), rows of `positions`, then the tables of a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, Final

import sqlalchemy as sa

from dagbok.events.errors import StorageFailed
from dagbok.projections.tables.database import BUSY_TIMEOUT_S, Database
from dagbok.projections.tables.postgres_errors import damaged_schema, explain, not_utf8
from dagbok.projections.tables.postgres_url import read_url, shown

STATEMENT_TIMEOUT_S: Final = 60.0
CONNECTIONS: Final = 4
"""Most connections of one process that read at once."""
WRITERS: Final = 2
"""Most that write at once: as many batches of partitions are written at the same time."""

_CONNECT_TIMEOUT_S: Final = 10
IDLE_TIMEOUT_S: Final = 60
_TCP_TIMEOUT_S: Final = 30

# Rows are found by their key, one by one. A planner that has not yet seen how many there are would read whole tables.
_BY_KEY: Final = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}

_DRIVER: Final = {
    "connect_timeout": _CONNECT_TIMEOUT_S,
    "client_encoding": "utf8",
    # Plans are made anew: one that was made while a table was empty would be kept when it is not.
    "prepare_threshold": None,
    # A network that swallows everything is noticed, and not by waiting for ever.
    "keepalives_idle": _TCP_TIMEOUT_S // 3,
    "keepalives_interval": _TCP_TIMEOUT_S // 3,
    "keepalives_count": 2,
    "tcp_user_timeout": _TCP_TIMEOUT_S * 1_000,
}


class PostgresDatabase(Database):
    """A schema. Whoever reads sees one snapshot (REPEATABLE READ, READ ONLY); whoever writes waits for others row by
    row (READ COMMITTED)."""

    def __init__(
        self,
        url: str,
        schema: str | None = None,
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        statement_timeout_s: float = STATEMENT_TIMEOUT_S,
        connections: int = CONNECTIONS,
        writers: int = WRITERS,
    ) -> None:
        """Connections are opened on demand. `schema`: see `read_url`. Raises `InvalidInput` for a URL or schema name
        that is none, and when the driver is not installed."""
        address, schema = read_url(url, schema)
        self.shown = shown(address, schema)
        self.schema = schema
        self._key = int.from_bytes(sha256(f"dagbok tables {schema}".encode()).digest()[:8], "big", signed=True)
        settings = {
            "search_path": f'"{schema}"',
            "lock_timeout": _ms(busy_timeout_s),
            "statement_timeout": _ms(statement_timeout_s),
            # A process that stands still (SIGSTOP) inside a transaction must not hold up all others.
            "idle_in_transaction_session_timeout": _ms(IDLE_TIMEOUT_S),
            "jit": "off",
        }
        self._readers = _engine(address, settings, connections, busy_timeout_s)
        # One more for `try_alone`, which is held for as long as a rebuild takes.
        self._writers = _engine(address, settings | _BY_KEY, writers + 1, busy_timeout_s)
        self._snapshots = self._readers.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    @property
    def dialect(self) -> sa.Dialect:
        return self._writers.dialect

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        with self._explained(), self._writers.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def reading(self, *, prepared: bool = True) -> Iterator[sa.Connection]:
        with self._explained(), self._snapshots.connect() as connection, connection.begin():
            if prepared:
                # Names of tables are those of now, rows those of the snapshot: behind this lock, which takes none yet,
                # no version is swapped, so that both fit.
                connection.exec_driver_sql("LOCK TABLE views IN ACCESS SHARE MODE")
            yield connection

    def prepare(self, connection: sa.Connection) -> None:
        """The schema is made when it is not there, which needs the right to; an existing one needs CREATE on it."""
        if connection.exec_driver_sql("SHOW server_encoding").scalar_one() != "UTF8":
            raise not_utf8(self.shown)
        self.lock_versions(connection, replacing=False)
        there = sa.select(sa.func.to_regnamespace(f'"{self.schema}"').is_not(None))
        if not connection.scalar(there):
            connection.execute(sa.schema.CreateSchema(self.schema))

    def lock_versions(self, connection: sa.Connection, *, replacing: bool) -> None:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(self._key)))
        if replacing:
            connection.exec_driver_sql("LOCK TABLE views IN ACCESS EXCLUSIVE MODE")

    def try_alone(self) -> Callable[[], None] | None:
        """By a lock of a session, which ends with the connection."""
        key = self._key ^ 1
        with self._explained():
            connection = self._writers.connect().execution_options(isolation_level="AUTOCOMMIT")
            try:
                alone = connection.scalar(sa.select(sa.func.pg_try_advisory_lock(key)))
            except BaseException:
                connection.close()
                raise

        def leave() -> None:
            with suppress(sa.exc.DBAPIError), connection:  # a connection that is gone has no lock either
                connection.scalar(sa.select(sa.func.pg_advisory_unlock(key)))

        if alone:
            return leave
        connection.close()
        return None

    def table_names(self, connection: sa.Connection) -> set[str]:
        return set(sa.inspect(connection).get_table_names(schema=self.schema))

    def damaged(self, cause: object) -> StorageFailed:
        return damaged_schema(self.shown, self.schema, cause)

    def close(self) -> None:
        self._readers.dispose()
        self._writers.dispose()

    def _explain(self, error: sa.exc.DBAPIError) -> StorageFailed:
        return explain(error, self.shown, self.schema)


def _engine(address: sa.URL, settings: dict[str, str], connections: int, timeout_s: float) -> sa.Engine:
    engine = sa.create_engine(
        address,
        paramstyle="format",
        connect_args=dict(_DRIVER),
        pool_size=connections,
        max_overflow=0,
        pool_timeout=timeout_s,
        pool_pre_ping=True,  # a server that was restarted costs nobody an error
        use_native_hstore=False,
    )
    names = ", ".join(["set_config(%s, %s, false)"] * len(settings))
    values = [text for setting in settings.items() for text in setting]

    def _on_connect(connection: Any, _record: object) -> None:
        connection.execute(f"SELECT {names}", values)
        connection.commit()

    sa.event.listen(engine, "connect", _on_connect)
    return engine


def _ms(seconds: float) -> str:
    return str(max(1, round(seconds * 1_000)))
