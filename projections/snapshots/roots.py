"""What the snapshots of a partition need: the roots of the collection of orphans."""

from __future__ import annotations

from dagbok.events.errors import ArtifactError, FormatTooNew
from dagbok.projections.artifacts.port import ArtifactKey, ScopedArtifacts
from dagbok.projections.snapshots.index import read_chunk
from dagbok.projections.snapshots.manifest import IndexChunk, Manifest, Slots, decode_manifest, is_whole


def roots_of(slots: Slots, store: ScopedArtifacts) -> set[ArtifactKey]:
    """Every part that a manifest or one of its chunks names, whichever fold it is of (blocking).

    Raises `FormatTooNew` for a whole manifest of an unknown format: nobody can tell what it needs. A damaged one, and
    one with a damaged chunk, is of no use any more, and needs nothing. Raises `StorageFailed`.
    """
    needed: set[ArtifactKey] = set()
    for data in slots.read():
        manifest = decode_manifest(data)
        if manifest is not None:
            needed.update(manifest.needs())
            for chunk in manifest.closed:
                needed.update(parts_in(store, chunk))
        elif is_whole(data):
            raise FormatTooNew("there is a snapshot of a format that this dagbok does not know")
    return needed


def stale_parts(store: ScopedArtifacts, stale: Manifest, *kept: Manifest) -> set[str]:
    """The hashes of what only a replaced manifest needed (blocking). Reads the chunks that differ, and no others."""
    kept_chunks = {chunk for manifest in kept for chunk in manifest.closed}
    needed = {key.sha256 for manifest in kept for key in manifest.needs()}
    for chunk in kept_chunks.difference(stale.closed):
        needed.update(key.sha256 for key in parts_in(store, chunk))
    named = {key.sha256 for key in stale.needs()}
    for chunk in set(stale.closed) - kept_chunks:
        named.update(key.sha256 for key in parts_in(store, chunk))
    return named - needed


def parts_in(store: ScopedArtifacts, chunk: IndexChunk) -> set[ArtifactKey]:
    """The parts of the runs in a chunk; none when it is damaged."""
    try:
        return {key for parts in read_chunk(store, chunk.key).values() for key in parts.needs()}
    except ArtifactError:
        return set()
