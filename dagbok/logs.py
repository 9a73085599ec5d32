"""Logging by structlog, on standard error: quiet for commands, JSON lines for services."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection
from typing import TextIO, cast

import structlog

from dagbok.settings import LogFormat, LogLevel


def configure(
    level: LogLevel,
    format: LogFormat = "auto",
    *,
    stream: TextIO | None = None,
    silent: Collection[str] = (),
    tracebacks: bool = True,
    line: structlog.typing.Processor | None = None,
    **ids: str | int,
) -> None:
    """Send what is logged at `level` or above to `stream` (standard error by default), one line per entry, with the
    traceback of an exception if wanted.

    `auto` is text on a terminal and JSON elsewhere. `ids` are bound to every line of this process, whatever task or
    thread logs it. Loggers named in `silent` say nothing. `line` makes the text of an entry instead of
    `format`. Calling it again replaces all of this.
    """
    target = cast(TextIO, _StandardError()) if stream is None else stream
    as_json = format == "json" or (format == "auto" and not target.isatty())

    def bind(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
        if not tracebacks:
            entry.pop("exc_info", None)
        return {**ids, **entry}

    def make(*names: str) -> structlog.WriteLogger:
        return _Silent() if names and names[0] in silent else structlog.WriteLogger(target)

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            bind,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([line] if line is not None else _rendering(as_json, target)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=make,
        cache_logger_on_first_use=False,
    )


class _Silent(structlog.WriteLogger):
    def msg(self, message: str) -> None:
        """Nothing is written."""

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg


class _StandardError:
    """Whatever standard error is when a line is written: a progress display puts itself in its place."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


def _rendering(as_json: bool, target: TextIO) -> list[structlog.typing.Processor]:
    if as_json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(sort_keys=False)]
    return [structlog.dev.ConsoleRenderer(colors=target.isatty(), exception_formatter=structlog.dev.plain_traceback)]
