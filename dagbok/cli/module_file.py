"""Python files with workers, verifiers and `main`: loaded by their path, and the pool that follows from it."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from pydantic import ValidationError

from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, InvalidInput
from dagbok.events.written import problems_of

OURS = "dagbok_file_"
MAX_MESSAGE = 300


def load_file(path: Path) -> ModuleType:
    """The module of a file, under a name that no import gives. Its folder is searched by its imports, last of all.

    Raises `InvalidInput` (`bad_module`) with file and line.
    """
    absolute = path.expanduser().resolve()
    imported = _imported(absolute)
    if imported is not None:
        return imported
    name = OURS + re.sub(r"\W", "_", pool_of(absolute))
    try:
        source = absolute.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"cannot read {path}: {error.strerror or error}", code=Code.BAD_MODULE, advice="name a Python file"
        ) from error
    module = ModuleType(name)
    module.__file__ = str(absolute)
    _search(absolute.parent)
    sys.modules[name] = module  # dataclasses and the like look their module up
    try:
        exec(compile(source, str(absolute), "exec", dont_inherit=True), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[name]
        raise broken(absolute, error) from error
    return module


def load(name: str) -> ModuleType:
    """The module of a file, or an importable one by its dotted name. Raises like `load_file`."""
    if name.endswith(".py") or os.sep in name or Path(name).is_file():
        return load_file(Path(name))
    _search(Path.cwd())
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise broken(Path(name), error) from error


def load_all(names: Sequence[str]) -> list[ModuleType]:
    """`load` each of them, the same file once."""
    files: dict[str, ModuleType] = {}
    for name in names:
        at = str(Path(name).expanduser().resolve())
        files[at] = files.get(at) or load(name)
    return list({id(module): module for module in files.values()}.values())


def as_file(path: Path) -> str:
    """A path that is not mistaken for a dotted name."""
    return str(path.expanduser().absolute())


def pool_of(path: Path) -> str:
    """The pool that serves the workers of a file: two files with equal worker names do not mix."""
    absolute = path.resolve()
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", absolute.stem)[:40] or "file"
    return f"{stem}-{sha256(os.fsencode(absolute)).hexdigest()[:10]}"


def broken(path: Path, error: BaseException, advice: str | None = None) -> DagbokError:
    """The error of a file that cannot be used: where in it, and what."""
    if isinstance(error, DagbokError):
        return error
    if isinstance(error, SyntaxError) and error.filename:
        where, message = f"{error.filename}:{error.lineno}", error.msg
    else:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        message = problems_of(error) if isinstance(error, ValidationError) else str(error)
    told = " ".join(message.split())[:MAX_MESSAGE]
    return InvalidInput(f"{where}: {type(error).__name__}: {told}".rstrip(": "), code=Code.BAD_MODULE, advice=advice)


def _imported(path: Path) -> ModuleType | None:
    """The module, when another file imported it: its definitions are the same ones then."""
    for name, module in tuple(sys.modules.items()):
        if not name.startswith(OURS) and getattr(module, "__file__", None) == str(path):
            return module
    return None


def _search(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
