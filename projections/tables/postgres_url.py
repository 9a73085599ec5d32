"""Which PostgreSQL database, in which schema: read from a URL, and shown to people without its password."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Final

import sqlalchemy as sa

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.extras import install

_FORM: Final = "postgresql://user:password@host:5432/database"
SCHEMA: Final = "dagbok"
"""Where the tables are unless another one is named."""
_PARAMETER: Final = "schema"
_NAMES: Final = frozenset(("postgresql", "postgres", "postgresql+psycopg"))
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,47}")


def read_url(url: str, schema: str | None = None) -> tuple[sa.URL, str]:
    """The address for the driver, and the schema: the one that is given, else the one that the URL names by its
    parameter `schema`, else `dagbok`. The other parameters are libpq's (`sslmode`, `sslrootcert` …).

    Raises `InvalidInput` when it is none, when the schema has no plain name, or when psycopg is not installed.
    """
    try:
        address = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InvalidInput("the database is no URL", code=Code.USAGE, advice=f"write {_FORM}") from None
    if address.drivername not in _NAMES:
        raise InvalidInput(f"{address.drivername} is not served", code=Code.USAGE, advice=f"write {_FORM}")
    named = address.query.get(_PARAMETER, SCHEMA)
    schema = schema if schema is not None else named if isinstance(named, str) else " ".join(named)
    if _SCHEMA.fullmatch(schema) is None or schema.startswith("pg_"):
        raise InvalidInput(
            f"{schema[:60]!r} names no schema here", code=Code.USAGE, advice="use the characters a-z 0-9 _, at most 48"
        )
    if find_spec("psycopg") is None:
        raise InvalidInput("psycopg is not installed", code=Code.USAGE, advice=install("postgres"))
    return address.set(drivername="postgresql+psycopg").difference_update_query([_PARAMETER]), schema


def shown(address: sa.URL, schema: str) -> str:
    """What people read: neither user nor password nor parameters."""
    port = f":{address.port}" if address.port else ""
    return f"schema {schema} of {address.host or 'localhost'}{port}/{address.database or ''}"
