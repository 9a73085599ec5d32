"""An artifact as the state keeps it: without its bytes, with the place where the log has them."""

from __future__ import annotations

from dagbok.events.run.values import ArtifactItem, ArtifactRef, Place
from dagbok.projections.task_graph.shared import shared
from dagbok.projections.task_graph.state import At


def staged_ref(item: ArtifactItem, at: At, index: int) -> ArtifactRef:
    """The reference to the item of this index in the event at `at`."""
    place = None if item.inline is None else Place(at.partition, at.offset, at.index, index)
    return ArtifactRef(shared(item.name), item.sha256, item.size_bytes, shared(item.media_type), place)
