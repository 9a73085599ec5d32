"""What an S3 service says when it fails, in the words of the port: one line, with whom has to do what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from dagbok.events.errors import NotAllowed, StorageFailed
from dagbok.projections.artifacts.s3.place import S3Place

_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w{1,64})</Code>")
_WHY: Final = re.compile(r'(?:message|error): "([^"]{1,120})"')
"""What the system says of a connection, inside the client's account of it."""
_METADATA: Final = re.compile(r"169\.254\.|\[fd00:ec2::|/latest/(api|meta-data)|sts\.|AssumeRole")
"""Where credentials are asked for when none are given."""
_NO_BUCKET: Final = "NoSuchBucket"
_CLOCK: Final = "RequestTimeTooSkewed"
_REGION: Final = ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
_DENIED: Final = (PermissionDeniedError, UnauthenticatedError)
_SHOWN: Final = 160

CREDENTIALS: Final = (
    "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or give the machine a role; it needs "
    "s3:ListBucket, GetObject, PutObject, DeleteObject and AbortMultipartUpload"
)


@contextmanager
def storage_errors(place: S3Place, name: str) -> Iterator[None]:
    """Raise `StorageFailed` in place of what the client raises. `name`: the blob that it was about, or nothing."""
    try:
        yield
    except (BaseError, OSError) as error:
        raise _failed(place, name, error) from error


def is_missing_bucket(error: BaseException) -> bool:
    """A service answers 404 for an object and for a bucket that is not there; only one of them is a failure."""
    return _word(_CODE, str(error)) == _NO_BUCKET


def _failed(place: S3Place, name: str, error: Exception) -> StorageFailed:
    text = str(error)
    about = f"artifact {name} in {place}" if name else f"artifacts in {place}"
    advice = _advice(place, error, text)
    return (NotAllowed if advice == CREDENTIALS else StorageFailed)(f"{about}: {_said(text)}", advice=advice)


def _said(text: str) -> str:
    """The first line, without the answer that follows it: its XML may repeat parts of the request."""
    status, code = _word(_STATUS, text), _word(_CODE, text)
    if status or code:
        return "the service says " + " ".join(filter(None, (status, code)))
    if "TimedOut" in text or "kind: Timeout" in text:
        return "the service did not answer in time"
    if why := _word(_WHY, text):
        return f"no connection: {why}"
    first = text.splitlines()[0].rpartition(" - ")[2] if text else "the client failed without a word"
    return first.removeprefix("Generic S3 error: ")[:_SHOWN]


def _advice(place: S3Place, error: Exception, text: str) -> str:
    code = _word(_CODE, text)
    if code == _NO_BUCKET or (code is None and isinstance(error, FileNotFoundError)):
        return f"create the bucket {place.bucket}, or name another one (DAGBOK_ARTIFACTS)"
    if code == _CLOCK:
        return "set the clock of this machine"
    if code in _REGION or "without LOCATION" in text:
        return f"set AWS_REGION to the region of the bucket {place.bucket}"
    status = _word(_STATUS, text)
    if status in ("401", "403") or _METADATA.search(text) or isinstance(error, _DENIED):
        return CREDENTIALS
    if status is None or status.startswith("5"):
        return "look whether the service is up and the endpoint right (AWS_ENDPOINT_URL); nothing is lost, try again"
    return "look at the service's own log for this request"


def _word(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
