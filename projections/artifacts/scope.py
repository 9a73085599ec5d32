"""Whose an artifact is, and the name that it gets in a store.

A name is ``<tenant folder>/<project folder>/<first 2 hex digits>/<SHA-256 in hex>``. A folder is the id itself when
every file system and object store takes it as it stands; any other id gets a readable rest, ``~`` and its SHA-256.
``~`` stands in no plain folder, so that two ids never share one, upper and lower case, dots and slashes included.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

import msgspec

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

SHA256_HEX: Final = re.compile(r"[0-9a-f]{64}")
PLAIN_FOLDER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
HASHED_FOLDER: Final = re.compile(r"[a-z0-9_-]{0,40}~[0-9a-f]{64}")
SHARD: Final = re.compile(r"[0-9a-f]{2}")


class Scope(msgspec.Struct, frozen=True):
    """A project of a tenant: what is stored in one scope is not found in another.

    Any two non-empty strings are taken, valid ids or not; raises `InvalidInput` when one is empty.
    """

    tenant: str
    project: str

    def __post_init__(self) -> None:
        if not self.tenant or not self.project:
            raise InvalidInput("an artifact belongs to a tenant and a project", code=Code.IDENTITY_REQUIRED)

    @property
    def place(self) -> str:
        """``<tenant folder>/<project folder>``. Different scopes have different places, on any file system."""
        return f"{folder_name(self.tenant)}/{folder_name(self.project)}"


SNAPSHOT_CHUNKS: Final = Scope("dagbok", "snapshots")
"""The scope of content that belongs to no tenant. It lives in a store with a root of its own."""


def folder_name(id: str) -> str:
    """At most 105 bytes of ``a-z 0-9 . _ - ~``, never starting with a dot; different ids give different names."""
    if PLAIN_FOLDER.fullmatch(id):
        return id
    readable = re.sub("[^a-z0-9_-]+", "-", id.lower())[:40]
    return f"{readable}~{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()}"


def blob_name(scope: Scope, sha256_hex: str) -> str:
    """The name of an artifact in a store."""
    return f"{scope.place}/{sha256_hex[:2]}/{sha256_hex}"


def is_folder_name(name: str) -> bool:
    """Could `folder_name` have given it?"""
    return bool(PLAIN_FOLDER.fullmatch(name) or HASHED_FOLDER.fullmatch(name))


def is_blob_name(name: str) -> bool:
    """Could `blob_name` have given it? Whatever else lies in a store belongs to somebody else."""
    match name.split("/"):
        case [tenant, project, shard, digest]:
            known_place = is_folder_name(tenant) and is_folder_name(project)
            return known_place and SHA256_HEX.fullmatch(digest) is not None and shard == digest[:2]
    return False
