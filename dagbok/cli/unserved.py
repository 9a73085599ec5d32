"""Pools that no living process serves, and the command that would."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.serving import served_pools
from dagbok.cli.advised import advised, as_argument
from dagbok.cli.module_file import pool_of
from dagbok.cli.reading import Reading
from dagbok.cli.text import clean
from dagbok.projections.task_graph.state import TaskStatus
from dagbok.projections.views.graph.rows import RunRow
from dagbok.settings import Settings

AT_WORK: Final[tuple[TaskStatus, ...]] = ("ready", "running", "verifying", "backoff")
MOST_FILES: Final = 200
NAMED: Final = 3
LONG_STEM: Final = 40
DEFAULT: Final = "default"
_OF_FILE: Final = re.compile(r"(?P<stem>.+)-[0-9a-f]{10}")


def unserved_pools(found: Reading, run: RunRow) -> frozenset[str]:
    """The pools in which tasks of a run that goes on should be worked on, and nobody serves them."""
    if run.status != "running" or found.on_kafka:  # there it is not known who serves what
        return frozenset()
    served = served_pools(found.folder)
    if served is None:
        return frozenset()
    return frozenset(found.queries.pools(found.tenant, found.project, run.run, AT_WORK)) - served


def note_of(
    pool: str, settings: Settings, beside: Iterable[str] = (), *, file: Path | None = None
) -> Sequence[str]:
    """What to say to who sends a task to a pool: nothing where somebody serves it. `file`: that may be the pool's."""
    served = served_pools(DataFolder(settings.data))
    idle = [] if served is None or pool in served else [pool]
    return nobody_serves(idle, settings, beside, known=[file] if file is not None else [])


def nobody_serves(
    pools: Iterable[str], settings: Settings, beside: Iterable[str] = (), *, known: Iterable[Path] = ()
) -> Sequence[str]:
    """What to say of these pools, with the command that serves them: one line, or none without a pool. `beside`: the
    other pools of the run, whose files may have verifiers that their tasks need; `known`: files that may be theirs."""
    pools = sorted(pools)
    if not pools:
        return []
    named = [clean(pool) for pool in pools[:NAMED]]
    more = f" and {len(pools) - NAMED} more" if len(pools) > NAMED else ""
    how = how_to_serve(pools, settings, beside, known=known)
    return [f"nobody serves the pool{'s' if len(pools) > 1 else ''} {', '.join(named)}{more}: {how}"]


def how_to_serve(
    pools: Sequence[str], settings: Settings, beside: Iterable[str] = (), *, known: Iterable[Path] = ()
) -> str:
    """`dagbok up --import flow.py`: with the files of the pools where they are found, or what is known of them."""
    search = _Search(settings.data, known)
    files = [search.file(pool) or _likely(pool) for pool in pools]
    if not any(files):
        return "start the program that serves it" if len(pools) == 1 else "start the programs that serve them"
    files += [search.file(pool) for pool in sorted(set(beside) - set(pools))]
    named = dict.fromkeys(file for file in files if file)
    return advised(settings, "up", *[f"--import {file}" for file in named])


class _Search:
    """Files by the pools that follow from their paths: those that are known, and what lies about."""

    def __init__(self, data: Path, known: Iterable[Path]) -> None:
        self._data, self._known = data, tuple(known)

    def file(self, pool: str) -> str:
        """As an argument of a command given here; empty when there is none."""
        match = _OF_FILE.fullmatch(pool)
        for path in self._candidates(match["stem"]) if match is not None else ():
            if pool_of(path) == pool:
                return as_argument(path)
        return ""

    def _candidates(self, stem: str) -> Iterable[Path]:
        yield from self._known
        # In the name of a pool a dash may stand for what a pool may not be called, and a long name is cut.
        pattern = glob.escape(stem).replace("-", "*") + ("*" if len(stem) >= LONG_STEM else "") + ".py"
        for folder in dict.fromkeys((Path.cwd(), self._data.parent)):
            for below in (pattern, f"*/{pattern}"):
                yield from islice(folder.glob(below), MOST_FILES)


def _likely(pool: str) -> str:
    """What to write for the file of a pool that is not found."""
    match = _OF_FILE.fullmatch(pool)
    return f"…/{match['stem']}.py" if match is not None else "FILE" if pool == DEFAULT else ""
