"""Logging by structlog, on standard error: quiet for commands, JSON lines for services."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog

from dagbok.settings import LogFormat, LogLevel


def configure(level: LogLevel, format: LogFormat = "auto", *, stream: TextIO | None = None, **ids: str | int) -> None:
    """Send what is logged at `level` or above to `stream` (standard error by default), one line per entry.

    `ids` are bound to every line of this process, whatever task or thread logs it. Calling it again replaces all.
    """
    target = sys.stderr if stream is None else stream
    as_json = format == "json" or (format == "auto" and not target.isatty())

    def bind(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
        return {**ids, **entry}

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            bind,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_rendering(as_json, target),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=target),
        cache_logger_on_first_use=False,
    )


def _rendering(as_json: bool, target: TextIO) -> list[structlog.typing.Processor]:
    if as_json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(sort_keys=False)]
    return [structlog.dev.ConsoleRenderer(colors=target.isatty(), exception_formatter=structlog.dev.plain_traceback)]
