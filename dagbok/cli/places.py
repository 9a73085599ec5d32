"""Where a command finds what is not in the log: in the data folder, or where the processes on Kafka keep it."""

from __future__ import annotations

from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.settings import Settings


def artifacts_place(settings: Settings) -> str:
    """For `open_artifacts`. Raises `InvalidInput` when on Kafka none is named."""
    if settings.kafka is None:
        return str(DataFolder(settings.data).artifacts)
    if not settings.artifacts:
        advice = "give --artifacts, or set DAGBOK_ARTIFACTS: s3://bucket/prefix, or a folder that all processes reach"
        raise InvalidInput("no place for artifacts is named", code=Code.USAGE, advice=advice)
    return settings.artifacts


def database_url(settings: Settings) -> str:
    """The tables of a log on Kafka. Raises `InvalidInput` when none are named."""
    if not settings.database:
        advice = "give --database postgresql://user:password@host:5432/database, or set DAGBOK_DATABASE"
        raise InvalidInput("no database is named", code=Code.USAGE, advice=advice)
    return settings.database


def no_folder(settings: Settings, command: str, advice: str) -> None:
    """Raises `InvalidInput` on Kafka, for a command that is about a data folder alone."""
    if settings.kafka is not None:
        raise InvalidInput(f"{command} is for data folders", code=Code.USAGE, advice=advice)
