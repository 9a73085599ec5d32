"""Dispatches and replies as bytes between processes (`messages.md`, section 7).

A dispatch of more than 64 KiB travels as a claim check: the whole lies in the artifact store of its tenant and
project, and a *manifest* names it by hash and length (architecture 3.4). It is derived, like every dispatch: when the
orphan collection has removed it, the attempt is dispatched again and it is written anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import structlog

from dagbok.events.envelope import ENVELOPE_VERSION, Dispatch, Input, Reply
from dagbok.events.errors import ArtifactDamaged
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import Scope

logger = structlog.get_logger(__name__)

PARCEL_VERSION: Final = 1
MAX_DISPATCH_BYTES: Final = 64 * 1024


class Manifest(msgspec.Struct, frozen=True):
    """Where a dispatch lies that was too large to travel."""

    tenant: str
    project: str
    sha256: str
    size_bytes: int


class Parcel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What travels: the dispatch itself, or its manifest."""

    v: int
    dispatch: Dispatch | None = None
    manifest: Manifest | None = None


_encode: Final = msgspec.json.encode
_decode_parcel: Final = msgspec.json.Decoder(Parcel).decode
_decode_dispatch: Final = msgspec.json.Decoder(Dispatch).decode
_decode_reply: Final = msgspec.json.Decoder(Reply).decode


def encode_dispatch(dispatch: Dispatch, store: ArtifactStore) -> bytes:
    """At most 64 KiB. Blocks when it has to write the rest. Raises `ArtifactTooLarge` or `StorageFailed`."""
    parcel = encode_small(dispatch)
    if parcel is None:
        stored = store.put(Scope(dispatch.tenant, dispatch.project), _encode(dispatch))
        manifest = Manifest(dispatch.tenant, dispatch.project, stored.sha256, stored.size_bytes)
        parcel = _encode(Parcel(v=PARCEL_VERSION, manifest=manifest))
    return parcel


def encode_small(dispatch: Dispatch) -> bytes | None:
    """The parcel of a dispatch that travels as a whole; none when it has to be stored. Never blocks."""
    parcel = _encode(Parcel(v=PARCEL_VERSION, dispatch=dispatch))
    if len(parcel) > MAX_DISPATCH_BYTES:
        parcel = _encode(Parcel(v=PARCEL_VERSION, dispatch=_without_bytes(dispatch)))
    return parcel if len(parcel) <= MAX_DISPATCH_BYTES else None


def decode_dispatch(data: bytes, store: ArtifactStore) -> Dispatch:
    """The dispatch of a parcel; blocks when it lies in the store, which proves its hash and length.

    Raises what `decode_parcel` and `fetch_dispatch` raise.
    """
    found = decode_parcel(data)
    return found if isinstance(found, Dispatch) else fetch_dispatch(found, store)


def decode_parcel(data: bytes) -> Dispatch | Manifest:
    """The dispatch that travelled, or where it lies. Raises `msgspec.MsgspecError` when it is none of this version."""
    parcel = _decode_parcel(data)
    check_version(parcel.v, PARCEL_VERSION)
    if parcel.manifest is not None:
        return parcel.manifest
    if parcel.dispatch is None:
        raise msgspec.ValidationError("a parcel with neither dispatch nor manifest")
    check_version(parcel.dispatch.v, ENVELOPE_VERSION)
    return parcel.dispatch


def fetch_dispatch(manifest: Manifest, store: ArtifactStore) -> Dispatch:
    """The dispatch that a manifest names. Blocks. Raises `ArtifactNotFound`, `ArtifactDamaged` or `StorageFailed` when
    the store has it not, and `msgspec.MsgspecError` when it is none of this version."""
    scope = Scope(manifest.tenant, manifest.project)
    dispatch = _decode_dispatch(store.get(scope, manifest.sha256, manifest.size_bytes))
    if scope != Scope(dispatch.tenant, dispatch.project):
        raise ArtifactDamaged("a manifest names the dispatch of another project")
    check_version(dispatch.v, ENVELOPE_VERSION)
    return dispatch


def encode_reply(reply: Reply) -> bytes:
    """An answer or a hint."""
    return _encode(reply)


def decode_reply(data: bytes) -> Reply:
    """Raises `msgspec.MsgspecError` when it is none of this version."""
    reply = _decode_reply(data)
    check_version(reply.v, ENVELOPE_VERSION)
    return reply


def decoded(replies: Sequence[bytes], address: str) -> Iterator[Reply]:
    """Those that this version understands; the others are said in a log line."""
    for data in replies:
        try:
            yield decode_reply(data)
        except msgspec.MsgspecError as error:
            logger.warning("queue.reply_undecodable", address=address[:140], error=str(error))


def check_version(found: int, known: int) -> None:
    """Raises `msgspec.ValidationError` when they differ."""
    if found != known:
        raise msgspec.ValidationError(f"version {found}; this process knows {known}")


def _without_bytes(dispatch: Dispatch) -> Dispatch:
    """Inline bytes stand in the log too, where their references say: they need not travel twice."""
    return msgspec.structs.replace(
        dispatch,
        inputs=tuple([_lean(item) for item in dispatch.inputs]),
        candidate=tuple([_lean(item) for item in dispatch.candidate]),
    )


def _lean(item: Input) -> Input:
    return item if item.inline is None or item.ref.place is None else Input(item.task, item.ref)
