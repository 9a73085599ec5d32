"""What a run's roots published, as files that a person can open."""

from __future__ import annotations

import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path

from dagbok.agents.workers.views import ArtifactView
from dagbok.cli.artifacts import write_file
from dagbok.results import RunResult

SUFFIXES = {
    "application/json": ".json",
    "application/octet-stream": ".bin",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "text/x-rst": ".rst",
    "application/yaml": ".yaml",
    "application/x-ndjson": ".jsonl",
}
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_UNFIT = re.compile(r"[^\w.,+=@ -]+")


@dataclass(frozen=True)
class OutputFile:
    """An artifact and the file that has its bytes."""

    task: str
    view: ArtifactView
    path: Path


def export(result: RunResult, data: Path, *, several: bool) -> list[OutputFile]:
    """Write the artifacts of the verified roots to `<data>/output/<run>/`, in a folder per root when the run has
    `several`, however many of them are verified.

    Blocks. Raises `StorageFailed`, `ArtifactDamaged` or `ArtifactNotFound`.
    """
    folder = data / "output" / result.run
    files: list[OutputFile] = []
    taken: set[Path] = set()
    for task, artifacts in result.roots.items():
        below = folder / _fit(task) if several else folder
        for name, view in artifacts.items():
            path = _free(below / file_name(name, view.ref.media_type), taken)
            write_file(path, view.data())
            files.append(OutputFile(task, view, path))
    return files


def file_name(name: str, media_type: str) -> str:
    """The name of an artifact as a file name, with the suffix of its media type unless it has one."""
    fit = _fit(name)
    if _SUFFIX.search(fit):
        return fit
    plain = media_type.partition(";")[0].strip().lower()
    return fit + (SUFFIXES.get(plain) or mimetypes.guess_extension(plain) or "")


def _fit(name: str) -> str:
    """A name that stays in its folder, and is not hidden."""
    return _UNFIT.sub("_", name).lstrip(".").strip()[:120] or "artifact"


def _free(path: Path, taken: set[Path]) -> Path:
    number = 1
    free = path
    while free in taken:
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    taken.add(free)
    return free
