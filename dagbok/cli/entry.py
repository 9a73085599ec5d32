"""`main(…)` of a file: its parameters as options, and the tasks that it returns."""

from __future__ import annotations

import enum
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import msgspec
from cyclopts import App

from dagbok.cli.module_file import broken
from dagbok.events.canonical import canonical
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, InvalidInput
from dagbok.events.ids import derive
from dagbok.events.specs import TaskSpec


@dataclass(frozen=True)
class Entry:
    """What a file is asked for: its tasks, and the arguments that `main` got (canonical JSON)."""

    file: Path
    tasks: tuple[TaskSpec, ...]
    arguments: str

    def key(self, data: Path, number: int) -> str:
        """The idempotency key of the run with this number: the same file, arguments and data folder give the same
        runs."""
        return derive("dagbok run", str(self.file), self.arguments, str(data.resolve()), number)


def main_app(module: ModuleType, shown: str, command: str = "run") -> App:
    """The options of `main`, as those of `dagbok run FILE` or another command. Raises `InvalidInput` (`bad_module`)
    when there is none."""
    path = Path(module.__file__ or "")
    main: object = getattr(module, "main", None)
    if not callable(main) or inspect.iscoroutinefunction(main):
        what = "no main(…)" if main is None else "a main that is no plain function"
        raise InvalidInput(
            f"{path}: it has {what}", code=Code.BAD_MODULE, advice="define main(…) that returns a TaskSpec"
        )
    app = App(name=f"dagbok {command} {shown}", help_format="plaintext", version_flags=[])
    app.default(main)
    return app


def call_main(module: ModuleType, options: Sequence[str], shown: str) -> Entry | None:
    """Call `main` with the options; none when they only ask for help, which is printed then.

    Raises `CycloptsError` for a wrong option, and `InvalidInput` when `main` fails or returns something else.
    """
    app, path = main_app(module, shown), Path(module.__file__ or "")
    command, bound, _ = app.parse_args(list(options), print_error=False, exit_on_error=False)
    if command is not getattr(module, "main", None):
        command(*bound.args, **bound.kwargs)
        return None
    bound.apply_defaults()
    arguments = canonical(msgspec.to_builtins(dict(bound.arguments), enc_hook=_plain, order="deterministic")).decode()
    return Entry(path, _tasks(path, command, bound), arguments)


def _tasks(path: Path, main: Callable[..., object], bound: inspect.BoundArguments) -> tuple[TaskSpec, ...]:
    try:
        returned = main(*bound.args, **bound.kwargs)
    except DagbokError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise broken(path, error, "mend main, or call it with other options") from error
    tasks = tuple(returned) if isinstance(returned, list | tuple) else (returned,)
    found = tuple([task for task in tasks if isinstance(task, TaskSpec)])
    if not found or len(found) != len(tasks):
        raise InvalidInput(
            f"{path}: main returned {type(returned).__name__}",
            code=Code.BAD_MODULE,
            advice="return a TaskSpec, or a list of them",
        )
    return found


def _plain(value: object) -> object:
    """A path means the place it names from here; other values are told apart by their text."""
    if isinstance(value, os.PathLike):
        return os.path.abspath(value)
    if isinstance(value, enum.Enum):
        return value.name
    return str(value)
