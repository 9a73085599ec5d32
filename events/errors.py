"""Every error that dagbok raises, as one tree.

    DagbokError                 has a code, a message, a fault, retry, and advice
    ├── Refused                 a command was refused; nothing changed
    ├── InvalidInput            what the caller wrote cannot be used: a spec, an outcome, a file, an option
    ├── LogError                the log cannot be read or written
    │   ├── EndMoved            the end of a partition is not where the writer expected it
    │   ├── LogCorrupt          records are damaged, or their chain is broken
    │   ├── LogLost             records that were there are gone
    │   └── FormatTooNew        written by a newer dagbok
    ├── StorageFailed           the disk is full or broken, or the file system is unfit
    │   └── NotAllowed          a broker or a store does not let this process do it
    ├── FolderBusy              another process owns the data folder
    └── ArtifactError           an artifact cannot be stored or read
        ├── ArtifactNotFound    not in this tenant and project
        ├── ArtifactDamaged     its bytes are not the ones that were stored
        └── ArtifactTooLarge    above the size limit

Two questions have an answer on every error: may the same request succeed later (`retry`), and whose fault is it
(`fault`)? A user sees one line, `str(error)`; a log sees the cause, kept by ``raise … from``.
"""

from __future__ import annotations

from typing import Final

from dagbok.events.codes import Code, Fault

LET_WRITE: Final = "make the data folder writable for this user, or use another one (--data)"
"""Advice where the file system refuses to write."""


class DagbokError(Exception):
    """Base of all errors of dagbok. `str()` gives one line: code, what happened, what to do next."""

    default_code = Code.INTERNAL_ERROR

    def __init__(self, message: str, *, code: Code | None = None, advice: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message
        self.advice = advice or self.code.meaning.advice

    @property
    def fault(self) -> Fault:
        """Who has to act."""
        return self.code.meaning.fault

    @property
    def retry(self) -> bool:
        """True: the same request may succeed later."""
        return self.code.retry

    def __str__(self) -> str:
        return f"{self.code.shown}: {self.message} — {self.advice}"


class Refused(DagbokError):
    """A decider refused a command; the state did not change."""

    def __init__(self, code: Code, message: str, *, advice: str | None = None) -> None:
        super().__init__(message, code=code, advice=advice)


class InvalidInput(DagbokError):
    """What the caller wrote cannot be used."""

    default_code = Code.INVALID_SPEC


class LogError(DagbokError):
    """The log cannot be read or written."""

    default_code = Code.LOG_CORRUPT


class EndMoved(LogError):
    """The end of a partition is not where the writer expected it: another writer was faster. Nothing was written."""

    default_code = Code.LOG_CONFLICT

    def __init__(self, topic: str, partition: int, expected: int, end: int) -> None:
        super().__init__(f"{topic}[{partition}] ends at {end}, expected {expected}")
        self.expected = expected
        self.end = end


class LogCorrupt(LogError):
    """Records are damaged, or the database file is."""


class LogLost(LogError):
    """Records that were there are gone: the log starts later or ends earlier than what was read before."""

    default_code = Code.LOG_LOST


class FormatTooNew(LogError):
    """An effective record was written by a newer dagbok; reading on would give a wrong state."""

    default_code = Code.SCHEMA_MISMATCH


class StorageFailed(DagbokError):
    """The disk is full or broken, or the file system is unfit."""

    default_code = Code.STORAGE_FAILED


class NotAllowed(StorageFailed):
    """A broker or a store does not let this process do what it asks for: somebody has to give it the right."""


class FolderBusy(DagbokError):
    """Another process owns the data folder."""

    default_code = Code.FOLDER_BUSY


class ArtifactError(DagbokError):
    """An artifact cannot be stored or read."""

    default_code = Code.ARTIFACT_INTEGRITY


class ArtifactNotFound(ArtifactError):
    """No such artifact in this tenant and project. A foreign one is not found either."""

    default_code = Code.NOT_FOUND


class ArtifactDamaged(ArtifactError):
    """The stored bytes do not have the hash or the length they were stored with, or are not a regular file."""


class ArtifactTooLarge(ArtifactError):
    """The bytes are above the size limit."""

    default_code = Code.TOO_LARGE
