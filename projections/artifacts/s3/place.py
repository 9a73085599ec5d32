"""Where artifacts lie on S3: ``s3://bucket`` or ``s3://bucket/prefix``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

SCHEME: Final = "s3"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PART: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_LONGEST_PREFIX: Final = 512
"""S3 takes keys of 1,024 bytes; a name of the store and its ending need at most 310."""


@dataclass(frozen=True)
class S3Place:
    """A bucket and the prefix below which everything is kept: parts joined by slashes; empty: the whole bucket."""

    bucket: str
    prefix: str = ""

    @classmethod
    def parse(cls, url: str) -> S3Place:
        """Read ``s3://bucket/prefix``; a slash at the end means nothing. Credentials, region and endpoint are not part
        of it: they stand in variables. Raises `InvalidInput` (`usage`)."""
        try:
            parts = urlsplit(url)
            if parts.username is not None or parts.password is not None:
                # Not shown: it could be a secret.
                raise _wrong("a URL with credentials", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead")
            plain = parts.scheme == SCHEME and parts.port is None and not (parts.query or parts.fragment)
        except ValueError as error:
            raise _wrong(repr(url)) from error
        prefix = parts.path.strip("/")
        if not plain or _BUCKET.fullmatch(parts.netloc) is None or not _is_prefix(prefix):
            raise _wrong(repr(url))
        return cls(parts.netloc, prefix)

    def __str__(self) -> str:
        return f"{SCHEME}://{self.bucket}/{self.prefix}".rstrip("/")


def _is_prefix(prefix: str) -> bool:
    parts = prefix.split("/") if prefix else []
    return len(prefix) <= _LONGEST_PREFIX and all(_PART.fullmatch(part) for part in parts)


def _wrong(what: str, advice: str = "write s3://bucket/prefix, of a-z A-Z 0-9 . _ - and slashes") -> InvalidInput:
    return InvalidInput(f"{what} is no place for artifacts", code=Code.USAGE, advice=advice)
