"""What dagbok logs inside somebody else's program: to the standard `logging`, under the names of its modules, so that
the program decides what becomes of it, and hears no more than warnings when it does not."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

ROOT: Final = "dagbok"
_CALLER: Final = 4
"""How many calls of structlog lie between whoever logs and the standard logger."""

_Raised = tuple[type[BaseException], BaseException, TracebackType | None]


def log_as_library() -> None:
    """Hand what dagbok logs to the standard `logging`, unless the program has configured structlog: then it goes where
    that says, as the program's own lines do.

    A program that configures neither sees warnings and errors on standard error, each as one line without a traceback:
    `dagbok: warning: attempt.unserved run=… task=…`. One that configures `logging` has them as records of the loggers
    `dagbok.…`, at its level and in its format, with the exception. Loggers of the program's own that it takes from
    structlog stay as structlog makes them.
    """
    if structlog.is_configured():
        return
    others = structlog.get_config()
    usual = tuple(others["processors"])

    def make(*names: str) -> WrappedLogger:
        return logging.getLogger(names[0]) if names and _is_ours(names[0]) else others["logger_factory"](*names)

    def wrap(logger: WrappedLogger, processors: Sequence[Processor], context: dict[str, object]) -> Any:
        if isinstance(logger, logging.Logger):
            # Other ones have been put in their place: by `structlog.testing.capture_logs`, say.
            chosen = _PROCESSORS if tuple(processors) == usual else processors
            return structlog.stdlib.BoundLogger(logger, processors=chosen, context=context)
        return others["wrapper_class"](logger, processors=processors, context=context)

    structlog.configure(logger_factory=make, wrapper_class=cast("type[structlog.typing.BindableLogger]", wrap))


def _is_ours(name: object) -> bool:
    return isinstance(name, str) and name.partition(".")[0] == ROOT


def _record(logger: logging.Logger, method: str, entry: EventDict) -> tuple[tuple[str], dict[str, object]]:
    """What the standard logger is called with."""
    raised = _raised(entry.pop("exc_info", None))
    event = str(entry.pop("event", ""))
    if logger.hasHandlers():
        return (_line(event, entry),), {"exc_info": raised, "stacklevel": _CALLER}
    if raised is not None:
        entry.setdefault("error", f"{raised[0].__name__}: {raised[1]}")
    level = "error" if method == "exception" else method
    return (_line(f"{ROOT}: {level}: {event}", entry),), {"exc_info": False}


def _raised(said: object) -> _Raised | None:
    if isinstance(said, BaseException):
        return type(said), said, said.__traceback__
    found = sys.exc_info() if said is True else said
    return cast(_Raised, found) if isinstance(found, tuple) and found[0] is not None else None


def _line(event: str, entry: EventDict) -> str:
    return " ".join([event, *(f"{name}={_text(value)}" for name, value in entry.items())])


def _text(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return text if text and text.isprintable() and not set(text) & set(' "=') else json.dumps(text, ensure_ascii=False)


_PROCESSORS: Final[Sequence[Processor]] = (
    structlog.stdlib.filter_by_level,
    structlog.contextvars.merge_contextvars,
    _record,
)
