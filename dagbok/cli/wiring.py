"""The adapters of a data folder, for commands that read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagbok.agents.hosting.artifacts import open_artifacts
from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.extras import not_installed
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import Log
from dagbok.events.log.sqlite import SqliteLog

if TYPE_CHECKING:
    from dagbok.agents.workers.reader import ArtifactReader


def open_log(folder: DataFolder) -> Log:
    """The log of a folder that is there."""
    return SqliteLog.open(folder.log)


async def open_kafka_log(settings: KafkaSettings) -> Log:
    """The log on a cluster. Raises as `KafkaLog.open` does, and `InvalidInput` without the extra `kafka`."""
    try:
        from dagbok.events.log.kafka import KafkaLog
    except ModuleNotFoundError as error:
        raise not_installed("a log on Kafka needs", error, "kafka") from error
    return await KafkaLog.open(settings)


def artifact_reader(place: str, log: Log) -> ArtifactReader:
    """Reads artifacts from the log or the store. `place`: see `open_artifacts`. Imported here: most commands read
    none."""
    from dagbok.agents.workers.reader import ArtifactReader

    return ArtifactReader(log, open_artifacts(place))
