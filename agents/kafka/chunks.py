"""Where the parts of snapshots lie: beside the artifacts of all tenants, and in the scope of none."""

from __future__ import annotations

from typing import Final

from dagbok.agents.hosting.artifacts import open_artifacts
from dagbok.projections.artifacts.port import ScopedArtifacts
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS

CHUNKS_BELOW: Final = "_snapshots"
"""A folder of no tenant: no id begins like this."""


def chunks_in(artifacts: str) -> ScopedArtifacts:
    """In the place of the artifacts. Raises like `open_artifacts`."""
    return open_artifacts(f"{artifacts.rstrip('/')}/{CHUNKS_BELOW}").within(SNAPSHOT_CHUNKS)
