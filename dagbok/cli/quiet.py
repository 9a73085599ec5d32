"""What commands log: warnings and above, one plain line each, unless asked for more."""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import Final

import structlog

from dagbok import logs
from dagbok.cli.text import clean
from dagbok.settings import Settings

TOLD_BY_COMMANDS: Final = (
    "dagbok.agents.hosting.services",
    "dagbok.agents.scheduler.chronicle",
    "dagbok.agents.workers.attempts",
    "dagbok.agents.workers.holdings",
)
"""Loggers of what a command shows anyway: in its progress, its tree, or the line of an error."""

LIBRARIES: Final = ("aiokafka", "faust", "mode")
"""What they log is for who looks into a fault: what comes of it, dagbok says itself."""

WHY: Final = ("error", "why", "advice")
WIDTH: Final = 300


def quiet_logs(settings: Settings) -> None:
    """Logging of a command that ends: a line for a person. Whoever sets a level or a format hears all loggers, with all
    that they say; from `debug` on, libraries too."""
    plain = settings.log_level is None and settings.log_format == "auto"
    logs.configure(
        settings.log_level or "warning",
        "text" if settings.log_format == "auto" else settings.log_format,
        silent=TOLD_BY_COMMANDS if settings.log_level is None else (),
        tracebacks=settings.debug,
        line=plain_line if plain and not settings.debug else None,
    )
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        if _FORWARDING not in logger.handlers:
            logger.addHandler(_FORWARDING)


def plain_line(_logger: object, _method: str, entry: structlog.typing.EventDict) -> str:
    """`warning: snapshot damaged: part 3 is missing (all of it: --log-level warning)`."""
    words = str(entry.get("event", "")).replace(".", " ").replace("_", " ")
    why = " — ".join(clean(str(entry[name]), WIDTH) for name in WHY if entry.get(name))
    level = entry.get("level", "warning")
    return f"{level}: {words}{': ' if why else ''}{why} (all of it: --log-level warning)"


class _Forwarding(logging.Handler):
    """To the log of dagbok, as what it says when it is to say all."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger(record.name).debug(record.getMessage(), library_level=record.levelname.lower())


_FORWARDING: Final = _Forwarding()


def only_json(wanted: bool) -> AbstractContextManager[object]:
    """What workers print would stand in the middle of the JSON: it goes to standard error then."""
    return redirect_stdout(sys.stderr) if wanted else nullcontext()
