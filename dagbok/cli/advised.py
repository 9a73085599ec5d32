"""Commands that a person is advised to give: pasted, they are about the same runs as the command that advises them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from dagbok.cli.options import settle
from dagbok.events.log.kafka_settings import options_of
from dagbok.settings import Settings

FOLDER_ALONE: Final = frozenset(("up",))
"""They serve all tenants of a data folder."""
EVERYBODY: Final = frozenset(("doctor", "scheduler", "worker", "verifier", "projector", "topics"))
"""They are about a whole log, and take where it is, but not whose runs are meant."""
STORELESS: Final = frozenset(("topics",))


def advised(settings: Settings, *words: str) -> str:
    """`dagbok resume 3f2a41d0… --data flow/data`: a command with the options without which it would mean another place
    than `settings` do: those that the variables of this process do not say, and that are no defaults. `words` are
    written as they are. A password in the URL of a database stands as `…`: what is printed may be kept.
    """
    return " ".join(["dagbok", *words, *_options(settings, words[0].partition(" ")[0])])


def as_argument(path: Path) -> str:
    """A path as a word of a command that is given here: the shorter of the absolute one and the one from here."""
    return shlex.quote(near(path))


def near(path: Path) -> str:
    """The shorter of the absolute path and the one from here."""
    try:
        from_here = os.path.relpath(path)
    except OSError:  # the directory is gone: a worker may have gone there
        return str(path)
    return str(path.absolute()) if from_here.startswith("..") else from_here


def _options(settings: Settings, command: str) -> list[str]:
    """The place, whose runs there, and then where the rest of a cluster is."""
    usual, _ = settle(None, None)
    options = _place(settings, usual, command)
    if command not in FOLDER_ALONE | EVERYBODY:
        options += _unless(settings.tenant == usual.tenant, "--tenant", settings.tenant)
        options += _unless(settings.project == usual.project, "--project", settings.project)
    if settings.kafka is not None and command not in STORELESS:
        options += _unless(settings.artifacts in (None, usual.artifacts), "--artifacts", settings.artifacts)
        options += _unless(settings.database in (None, usual.database), "--database", settings.database, secret=True)
    return options


def _place(settings: Settings, usual: Settings, command: str) -> list[str]:
    if settings.kafka is None:
        named = settings.data.absolute() != usual.data or command == "doctor"
        return ["--data", as_argument(settings.data)] if named else []
    if command in EVERYBODY:
        return [*options_of(settings.kafka, os.environ)]
    # the variable alone makes no command one about Kafka
    return ["--kafka", shlex.quote(settings.kafka.bootstrap_servers)]


def _unless(usual: bool, option: str, value: str | None, *, secret: bool = False) -> list[str]:
    if usual or value is None:
        return []
    return [option, shlex.quote(_without_password(value) if secret else value)]


def _without_password(url: str) -> str:
    try:
        password = urlsplit(url).password
    except ValueError:
        return url
    return url if not password else url.replace(f":{password}@", ":…@", 1)
