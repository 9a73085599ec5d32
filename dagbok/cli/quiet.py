"""What commands log: warnings and above, unless asked for more."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import Final

from dagbok import logs
from dagbok.settings import Settings

TOLD_BY_COMMANDS: Final = (
    "dagbok.agents.hosting.services",
    "dagbok.agents.scheduler.chronicle",
    "dagbok.agents.workers.attempts",
    "dagbok.agents.workers.holdings",
)
"""Loggers of what a command shows anyway: in its progress, its tree, or the line of an error."""


def quiet_logs(settings: Settings) -> None:
    """Logging of a command that ends. Whoever sets a level hears all loggers."""
    logs.configure(
        settings.log_level or "warning",
        "text" if settings.log_format == "auto" else settings.log_format,
        silent=TOLD_BY_COMMANDS if settings.log_level is None else (),
        tracebacks=settings.debug,
    )


def only_json(wanted: bool) -> AbstractContextManager[object]:
    """What workers print would stand in the middle of the JSON: it goes to standard error then."""
    return redirect_stdout(sys.stderr) if wanted else nullcontext()
