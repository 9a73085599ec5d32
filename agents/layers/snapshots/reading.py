"""Reading snapshots of the own format, also those of earlier versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from dagbok.agents.layers.snapshots.schema import FORMAT, SCHEMA_VERSION, Snapshot

Document: TypeAlias = dict[str, Any]
EnvelopeMigrator: TypeAlias = Callable[[Document], Document]
"""From a document of one schema version to the next. Pure: it is handed a copy, and asks nothing but that."""

FIRST_VERSION: Final = 3
ENVELOPE_MIGRATORS: Final[Mapping[int, EnvelopeMigrator]] = MappingProxyType({})
"""By the version that each starts from. Version 3 is the first of our own, so there is none yet."""

SnapshotValue: TypeAlias = Snapshot | Mapping[str, object] | str | bytes


def read_snapshot(value: SnapshotValue) -> Snapshot:
    """A snapshot from itself, a mapping, or JSON text.

    Raises:
        pydantic.ValidationError: It is malformed, or has a field too many.
        ValueError: It is of another format, or of a version that this dagbok does not know.
    """
    found = own_snapshot(value)
    if found is None:
        raise ValueError(f"This is no snapshot of the format {FORMAT}; import_snapshot reads those of Agenton")
    return found


def own_snapshot(value: object) -> Snapshot | None:
    """The same; None for what does not claim to be of the own format, whatever its version."""
    if isinstance(value, Snapshot):
        return value
    document = _parsed(value) if isinstance(value, str | bytes) else value
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        return None
    return Snapshot.model_validate(migrate_envelope(dict(document), ENVELOPE_MIGRATORS, SCHEMA_VERSION))


def migrate_envelope(document: Document, migrators: Mapping[int, EnvelopeMigrator], to: int) -> Document:
    """Bring a document to schema version `to`, step by step.

    Raises:
        ValueError: It is newer, or a step is missing.
    """
    while (version := document.get("schema_version")) != to:
        if not isinstance(version, int) or version not in migrators:
            raise ValueError(_unknown(version, to))
        document = {**migrators[version](deepcopy(document)), "schema_version": version + 1}
    return document


def _parsed(text: str | bytes) -> object:
    """Parsing a long history only to look at one member would cost more than all the rest."""
    may_be = (FORMAT in text) if isinstance(text, str) else (FORMAT.encode() in text)
    if not may_be:
        return None
    try:
        return from_json(text)
    except ValueError:
        return None


def _unknown(version: object, known: int) -> str:
    if isinstance(version, int) and version > known:
        return f"The snapshot is of schema version {version}; this dagbok reads {FIRST_VERSION} to {known}: upgrade it"
    return f"The snapshot is of schema version {version!r}, which no migrator leads from to {known}"
