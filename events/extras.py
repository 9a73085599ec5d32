"""How to install what only some deployments need."""

from __future__ import annotations

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput


def install(extra: str) -> str:
    """The advice for a missing extra: what works, since dagbok is in no package index."""
    return f"in a clone of dagbok: pip install '.[{extra}]'"


def not_installed(needs: str, missing: ModuleNotFoundError, extra: str) -> InvalidInput:
    """What to raise (`usage`) when a module of an extra is missing. `needs`: `a log on Kafka needs`."""
    return InvalidInput(f"{needs} {missing.name}, which is not installed", code=Code.USAGE, advice=install(extra))
