"""One call of the command line, from its arguments to its exit status."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from cyclopts.exceptions import CycloptsError

from dagbok.cli import say
from dagbok.cli.app import build
from dagbok.cli.exits import Exit, exit_of_code
from dagbok.cli.interrupts import Interrupted
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, InvalidInput
from dagbok.settings import TRUE

HELP = ("--help", "-h")
OF_FILES = ("run", "submit")


def perform(tokens: Sequence[str]) -> int:
    """Do what the arguments say and return the exit status. Never raises."""
    _tolerate_terminals()
    try:
        status = _perform(tokens)
        if not sys.stdout.closed:  # by a worker, say
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
        if _asks_for_help_on_a_file(tokens):
            from dagbok.cli.run import help_on_file

            help_on_file(tokens[0], tokens[1])
        status: int | None = build()(tokens, print_error=False, exit_on_error=False, result_action="return_value")
    except Interrupted as interrupted:
        return interrupted.status
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
    debug = "--debug" in tokens or os.environ.get("DAGBOK_DEBUG", "").strip().lower() in TRUE
    say.failure(error, status, as_json="--json" in tokens, debug=debug)
    return status


def _internal(error: Exception) -> DagbokError:
    advice = "run it again with --debug and report it"
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        advice = "a file of this process was closed behind its back: does a worker close what it has not opened?"
    told = DagbokError(f"{type(error).__name__}: {error}", code=Code.INTERNAL_ERROR, advice=advice)
    told.__cause__ = error
    return told


def _asks_for_help_on_a_file(tokens: Sequence[str]) -> bool:
    """The options of `main` are known only when the file is loaded: they stand before the help of the command."""
    return len(tokens) > 2 and tokens[0] in OF_FILES and not tokens[1].startswith("-") and bool({*HELP} & {*tokens})


def _sentence(error: CycloptsError) -> str:
    """Without the list of all commands that follows an unknown one."""
    return " ".join(str(error).split()).partition(". Available")[0].rstrip(".")


def _help_for(tokens: Sequence[str]) -> str:
    command = next((token for token in tokens if not token.startswith("-")), "")
    if command not in build():
        return "see dagbok --help"
    named_file = command in OF_FILES and len(tokens) > 1 and not tokens[1].startswith("-")
    return f"see dagbok {command} {tokens[1]} --help" if named_file else f"see dagbok {command} --help"


def _tolerate_terminals() -> None:
    """A terminal that cannot show a character shows another one; it is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
