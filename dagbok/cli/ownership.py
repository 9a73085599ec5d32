"""Who decides for a data folder, in words: a person who looks at a run that does not go on is told why."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.presence import OwnerSeen, look_at_owner
from dagbok.cli.advised import advised
from dagbok.settings import Settings


def owner_of(settings: Settings) -> OwnerSeen:
    """Who owns the data folder now."""
    return look_at_owner(DataFolder(settings.data))


def who_goes_on(settings: Settings) -> Sequence[str]:
    """What keeps open runs of the folder from going on, and what to do; nothing when its owner is well."""
    if settings.kafka is not None:
        return []
    seen = owner_of(settings)
    if seen.state == "none":
        everything, its_own = advised(settings, "up", "--import FILE"), advised(settings, "run", "FILE")
        return [f"{seen}: nothing goes on; {everything} goes on with all runs, {its_own} with its own"]
    if seen.state == "silent":
        return [f"{seen}; nothing is decided until it goes on (kill -CONT {seen.pid}) or ends, and nothing is lost"]
    return []
