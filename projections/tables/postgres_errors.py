"""What errors of PostgreSQL mean for whoever meets them, by SQLSTATE (PostgreSQL's manual, appendix A)."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from dagbok.events.errors import StorageFailed
from dagbok.projections.tables.database import in_one_line

_UNREACHABLE: Final = "start the database, or correct its address; nothing is lost, the tables go on where they stand"
_RIGHTS: Final = "give the user of the URL the rights that docs/tables.md lists"
_BUSY: Final = "wait for the transaction that holds it, or end it (pg_stat_activity); then try again"

# By whole states, else by class (the first two characters).
_ADVICE: Final = {
    "08": _UNREACHABLE,
    "57": _UNREACHABLE,  # the server is shut down, or has not started up yet
    "28": "correct user and password of the database URL",
    "3D": "create the database first: dagbok makes its schema, not the database",
    "53": "make room on the server of the database: disk, memory or connections",
    "25006": "name the primary server: this one only reads",
    "42501": _RIGHTS,
    "2BP01": "drop what was built on the tables (SQL views, foreign keys): a rebuild replaces them, so build on copies",
    "55P03": _BUSY,
    "57014": _BUSY,
    "40": _BUSY,  # deadlocks too: one of both is ended
    "25P03": "find out why the process stood still inside a transaction; what it had begun was rolled back",
}

_DAMAGE: Final = ("22", "23", "42", "XX001", "XX002")
"""The statements are always the same and fit the tables that were made, so one that does not has met other tables."""


def explain(error: sa.exc.DBAPIError, shown: str, schema: str) -> StorageFailed:
    """The error that says what to do."""
    cause = error.orig or error
    state = getattr(cause, "sqlstate", None)
    if not isinstance(state, str):  # there is no server, or no connection any more
        return StorageFailed(f"{shown}: {in_one_line(cause)}", advice=_UNREACHABLE)
    advice = _ADVICE.get(state) or _ADVICE.get(state[:2])
    if advice is None and state.startswith(_DAMAGE):
        return damaged_schema(shown, schema, cause)
    return StorageFailed(f"{shown}: {in_one_line(cause)}", advice=advice)


def damaged_schema(shown: str, schema: str, cause: object) -> StorageFailed:
    """The tables are not what was written into them."""
    return StorageFailed(
        f"{shown} is damaged: {in_one_line(cause)}",
        advice=f"DROP SCHEMA {schema} CASCADE: its tables are built again from the log",
    )


def not_utf8(shown: str) -> StorageFailed:
    """Texts are of all languages."""
    return StorageFailed(f"{shown}: the database is not in UTF8", advice="CREATE DATABASE … ENCODING 'UTF8'")
