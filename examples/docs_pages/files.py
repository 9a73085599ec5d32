"""Which files of a folder are documentation, and how a path travels in JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from docs_pages.links import SUFFIXES

RUN = re.compile(r"[0-9a-f]{32}")
"""The id of a run."""


def list_files(folder: Path) -> list[Path]:
    """All Markdown and reStructuredText files below a folder, relative to it, in order.

    Hidden folders, `node_modules`, virtual environments and the results of runs (`output/RUN`, where dagbok writes
    them) are skipped and links to folders not followed: an audit does not find the report of the one before. A folder
    that cannot be listed stands in the list itself, so that it is reported.
    """
    return sorted(path.relative_to(folder) for path in _walk(folder))


def packed(path: Path) -> str:
    """A path as JSON can hold it: file names are bytes, and need not be text."""
    return quote(os.fsencode(path))


def unpacked(text: str) -> Path:
    """The path again."""
    return Path(os.fsdecode(unquote_to_bytes(text)))


def shown(path: Path) -> str:
    """A path for people to read."""
    return os.fsencode(path).decode("utf-8", "replace")


def _walk(folder: Path) -> Iterator[Path]:
    closed: list[str] = []
    for place, folders, files in os.walk(folder, onerror=lambda error: closed.append(error.filename)):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not _left_out(place, name)]
        yield from (Path(place, name) for name in files if name.lower().endswith(SUFFIXES))
    yield from map(Path, closed)


def _left_out(place: str, name: str) -> bool:
    of_a_run = Path(place).name == "output" and RUN.fullmatch(name) is not None
    return of_a_run or name.startswith(".") or name == "node_modules"
