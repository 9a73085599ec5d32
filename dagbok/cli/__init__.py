"""The command line: `dagbok run FILE`, `dagbok up`, and commands that look at runs and steer them (`docs/cli.md`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from cyclopts.exceptions import CycloptsError

from dagbok.cli import say
from dagbok.cli.app import build
from dagbok.cli.exits import Exit, exit_of_code
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, InvalidInput


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say (those of the process by default) and return the exit status. Never raises."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    _tolerate_terminals()
    try:
        status = _perform(tokens)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone; the interpreter must not try to flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.BROKEN_PIPE
    return status


def _perform(tokens: Sequence[str]) -> int:
    try:
        status: int | None = build()(
            tokens, print_error=False, exit_on_error=False, result_action="return_value", error_console=None
        )
    except DagbokError as error:
        return _fail(error, tokens)
    except CycloptsError as error:
        return _fail(InvalidInput(_sentence(error), code=Code.USAGE, advice=_help_for(tokens)), tokens)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        return _fail(_internal(error), tokens)
    return status or Exit.SUCCEEDED


def _fail(error: DagbokError, tokens: Sequence[str]) -> int:
    status = exit_of_code(error.code)
    debug = "--debug" in tokens or os.environ.get("DAGBOK_DEBUG", "0").lower() in ("1", "true", "yes", "on")
    say.failure(error, status, as_json="--json" in tokens, debug=debug)
    return status


def _internal(error: Exception) -> DagbokError:
    told = DagbokError(
        f"{type(error).__name__}: {error}", code=Code.INTERNAL_ERROR, advice="run it again with --debug and report it"
    )
    told.__cause__ = error
    return told


def _sentence(error: CycloptsError) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _help_for(tokens: Sequence[str]) -> str:
    command = next((token for token in tokens if not token.startswith("-")), None)
    known = command if command is not None and command in build() else None
    return f"see dagbok {known} --help" if known else "see dagbok --help"


def _tolerate_terminals() -> None:
    """A terminal that cannot show a character shows another one; it is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
