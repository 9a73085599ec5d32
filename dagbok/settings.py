"""Settings: what `DAGBOK_*` variables say, in one typed place. Options of the command line go before them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.log.kafka_settings import KafkaSettings

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "text", "json"]

TRUE = frozenset(("1", "true", "yes", "on"))
FALSE = frozenset(("", "0", "false", "no", "off"))


@dataclass(frozen=True)
class Settings:
    """Each field is read from the variable of its name: `data` from `DAGBOK_DATA`. `docs/cli.md` has the list.

    `data`: the data folder. `tenant`, `project`: whose runs are meant. `user`: in whose name runs start and commands
    are sent. `log_level`: none means `info` for services and `warning` for all else. `log_format`: `auto` means text on
    a terminal and JSON elsewhere. `debug`: errors come with their traceback. `tenant_limit`: the most attempts of one
    tenant that an owner has sent or running at once; none: as many as there are places. `artifacts`: where processes
    on Kafka keep artifacts, ``s3://bucket/prefix`` or a folder that all of them reach (`docs/artifacts.md`).
    `database`: where their tables are, ``postgresql://user:password@host:5432/database`` (`docs/tables.md`).
    `session_s`: after how many seconds without a sign of life a process on Kafka is taken for dead. `stall_s`: after
    how many seconds without progress, with something to read, a process on Kafka ends. `health_host`, `health_port`:
    where it serves its health and metrics; no port: nowhere. `kafka`: the cluster whose runs are meant, as a command
    was told; none: those of the data folder.
    """

    data: Path = Path("dagbok-data")
    tenant: str = "local"
    project: str = "default"
    user: str = "local"
    log_level: LogLevel | None = None
    log_format: LogFormat = "auto"
    debug: bool = False
    tenant_limit: int | None = None
    artifacts: str | None = None
    database: str | None = None
    session_s: float = 10.0
    stall_s: float = 120.0
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    kafka: KafkaSettings | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables; an empty one counts as absent. Raises `InvalidInput` (`usage`) naming a wrong one."""
        default = cls()
        return cls(
            data=Path(_read(environment, "DATA") or default.data),
            tenant=_read(environment, "TENANT") or default.tenant,
            project=_read(environment, "PROJECT") or default.project,
            user=_read(environment, "USER") or default.user,
            log_level=_level(_read(environment, "LOG_LEVEL")),
            log_format=_format(_read(environment, "LOG_FORMAT")),
            debug=_flag(environment, "DEBUG"),
            tenant_limit=_count(environment, "TENANT_LIMIT"),
            artifacts=_read(environment, "ARTIFACTS") or None,
            database=_read(environment, "DATABASE") or None,
            session_s=_seconds(environment, "SESSION_S", default.session_s),
            stall_s=_seconds(environment, "STALL_S", default.stall_s),
            health_host=_read(environment, "HEALTH_HOST") or default.health_host,
            health_port=_count(environment, "HEALTH_PORT"),
        )


def _read(environment: Mapping[str, str], name: str) -> str:
    return environment.get(f"DAGBOK_{name}", "").strip()


def _level(value: str) -> LogLevel | None:
    for level in get_args(LogLevel):
        if value.lower() == level:
            found: LogLevel = level
            return found
    if value:
        raise _wrong("LOG_LEVEL", value, get_args(LogLevel))
    return None


def _format(value: str) -> LogFormat:
    for name in get_args(LogFormat):
        if value.lower() == name:
            found: LogFormat = name
            return found
    if value:
        raise _wrong("LOG_FORMAT", value, get_args(LogFormat))
    return "auto"


def _flag(environment: Mapping[str, str], name: str) -> bool:
    value = _read(environment, name).lower()
    if value not in TRUE | FALSE:
        raise _wrong(name, value, ("1", "0"))
    return value in TRUE


def _count(environment: Mapping[str, str], name: str) -> int | None:
    value = _read(environment, name)
    if value and not (value.isascii() and value.isdecimal() and int(value) > 0):
        raise InvalidInput(
            f"DAGBOK_{name} is {value!r}", code=Code.USAGE, advice="set it to a number above zero, or unset it"
        )
    return int(value) if value else None


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    value = _read(environment, name)
    try:
        found = float(value) if value else default
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        told = f"DAGBOK_{name} is {value!r}"
        raise InvalidInput(told, code=Code.USAGE, advice="set it to seconds above zero, or unset it")
    return found


def _wrong(name: str, value: str, allowed: tuple[str, ...]) -> InvalidInput:
    return InvalidInput(
        f"DAGBOK_{name} is {value!r}", code=Code.USAGE, advice=f"set it to one of {', '.join(allowed)}, or unset it"
    )
