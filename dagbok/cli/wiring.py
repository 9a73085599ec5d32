"""The adapters of a data folder, for commands that read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.log.port import Log
from dagbok.events.log.sqlite import SqliteLog

if TYPE_CHECKING:
    from dagbok.agents.workers.reader import ArtifactReader


def open_log(folder: DataFolder) -> Log:
    """The log of a folder that is there."""
    return SqliteLog.open(folder.log)


def artifact_reader(folder: DataFolder, log: Log) -> ArtifactReader:
    """Reads artifacts from the log or the store. Imported here: most commands read none."""
    from dagbok.agents.workers.reader import ArtifactReader
    from dagbok.projections.artifacts.local import local_store

    return ArtifactReader(log, local_store(folder.artifacts))
