"""Options that several commands have, and what they come to together with the settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.ids import ID_PATTERN
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.settings import LogFormat, LogLevel, Settings

MAIN_OPTIONS = "Options of main in FILE."
RunName = Annotated[str, Parameter(help='Id, its first digits, or "last".')]
Imports = Annotated[
    list[str] | None,
    Parameter(name="--import", negative="", help="Module or file with further workers and verifiers; repeatable."),
]

PLACE = Group("Place", sort_key=10)
OUTPUT = Group("Output", sort_key=20)


@Parameter(name="*")
@dataclass(frozen=True)
class Place:
    """Where the runs are and whose they are."""

    data: Annotated[Path | None, Parameter(group=PLACE)] = None
    """Data folder. Else $DAGBOK_DATA, else ./dagbok-data."""
    tenant: Annotated[str | None, Parameter(group=PLACE)] = None
    """Else $DAGBOK_TENANT, else "local"."""
    project: Annotated[str | None, Parameter(group=PLACE)] = None
    """Else $DAGBOK_PROJECT, else "default"."""
    kafka: Annotated[str | None, Parameter(group=PLACE)] = None
    """Brokers, HOST:PORT with commas between: runs of a log on Kafka instead of a data folder."""
    artifacts: Annotated[str | None, Parameter(group=PLACE)] = None
    """With --kafka: s3://BUCKET/PREFIX, or a folder that all processes reach. Else $DAGBOK_ARTIFACTS."""
    database: Annotated[str | None, Parameter(group=PLACE)] = None
    """With --kafka: the tables, postgresql://USER@HOST:PORT/DATABASE. Else $DAGBOK_DATABASE."""


UNSEEN = Parameter(group=PLACE, show=False)


@Parameter(name="*")
@dataclass(frozen=True)
class FolderPlace(Place):
    """Which data folder, for a command that is about a whole one. Its help has no other option; the others are taken so
    that the refusal can say what is meant."""

    data: Annotated[Path | None, Parameter(group=PLACE)] = None
    """Data folder. Else $DAGBOK_DATA, else ./dagbok-data."""
    tenant: Annotated[str | None, UNSEEN] = None
    project: Annotated[str | None, UNSEEN] = None
    kafka: Annotated[str | None, UNSEEN] = None
    artifacts: Annotated[str | None, UNSEEN] = None
    database: Annotated[str | None, UNSEEN] = None


@Parameter(name="*")
@dataclass(frozen=True)
class AsOf:
    """Which of the turns of a session is meant."""

    turn: int | None = None
    """As it was after this turn; the last one if left out."""
    event: int | None = None
    """As it was when the run had the event of this number."""


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How a command tells what it did."""

    json: Annotated[bool, Parameter(group=OUTPUT, negative="", show_default=False)] = False
    """Results, and errors, as JSON."""
    debug: Annotated[bool, Parameter(group=OUTPUT, negative="", show_default=False)] = False
    """Errors with their traceback. Also $DAGBOK_DEBUG=1."""
    log_level: Annotated[LogLevel | None, Parameter(group=OUTPUT)] = None
    """What is logged to standard error. Else $DAGBOK_LOG_LEVEL."""
    log_format: Annotated[LogFormat | None, Parameter(group=OUTPUT)] = None
    """How it is logged: "auto" is text on a terminal and JSON elsewhere. Else $DAGBOK_LOG_FORMAT."""


def settle(place: Place | None, output: Output | None) -> tuple[Settings, Output]:
    """Options first, then variables, then defaults; the data folder is absolute. Raises `InvalidInput`."""
    place, output = place or Place(), output or Output()
    for option, value in (("--artifacts", place.artifacts), ("--database", place.database)):
        if value is not None and place.kafka is None:
            told = f"{option} is about a log on Kafka, and none is named: a data folder has its own"
            raise InvalidInput(told, code=Code.USAGE, advice=f"add --kafka HOST:PORT, or leave {option} out")
    found = Settings.from_environment()
    settings = Settings(
        data=(place.data or found.data).expanduser().absolute(),
        tenant=place.tenant or found.tenant,
        project=place.project or found.project,
        user=found.user,
        log_level=output.log_level or found.log_level,
        log_format=output.log_format or found.log_format,
        debug=output.debug or found.debug,
        tenant_limit=found.tenant_limit,
        artifacts=place.artifacts or found.artifacts,
        database=place.database or found.database,
        session_s=found.session_s,
        stall_s=found.stall_s,
        health_host=found.health_host,
        health_port=found.health_port,
        kafka=KafkaSettings.from_environment(os.environ, bootstrap_servers=place.kafka) if place.kafka else None,
    )
    for option, value in (("tenant", settings.tenant), ("project", settings.project)):
        if ID_PATTERN.fullmatch(value) is None:
            raise InvalidInput(
                f"{option} {value[:140]!r} is not 1 to 128 of the characters A-Z a-z 0-9 . _ -",
                code=Code.USAGE,
                advice=f"check --{option} and DAGBOK_{option.upper()}",
            )
    return settings, output
