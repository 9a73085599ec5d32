"""How to install what only some deployments need."""

from __future__ import annotations


def install(extra: str) -> str:
    """The advice for a missing extra: what works, since dagbok is in no package index."""
    return f"in a clone of dagbok: pip install '.[{extra}]'"
