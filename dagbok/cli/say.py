"""What a command writes: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys
import traceback

import msgspec

from dagbok.cli.exits import Exit
from dagbok.events.errors import DagbokError


def out(line: str = "") -> None:
    """A line of the result."""
    sys.stdout.write(line + "\n")


def out_json(value: object) -> None:
    """A JSON value on one line, at once."""
    out(msgspec.json.encode(value).decode())
    sys.stdout.flush()


def note(line: str) -> None:
    """A line for the person who watches."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def failure(error: DagbokError, status: Exit, *, as_json: bool, debug: bool) -> None:
    """The error as one line, or as one JSON object; before it the traceback if asked for."""
    cause = error.__cause__ if error.__cause__ is not None and status is Exit.INTERNAL else error
    if debug:
        sys.stderr.write("".join(traceback.format_exception(cause)))
    if as_json:
        told = {
            "code": str(error.code),
            "message": error.message,
            "advice": error.advice,
            "retry": error.retry,
            "exit": int(status),
        }
        note(msgspec.json.encode({"error": told}).decode())
    else:
        note(" ".join(str(error).split()))
