"""Exit statuses of the command line, and which error has which (`docs/cli.md`)."""

from __future__ import annotations

from enum import IntEnum

from dagbok.events.codes import Code


class Exit(IntEnum):
    """What the process returns."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    BLOCKED = 4
    BUSY = 5
    STORAGE = 6
    INTERNAL = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


_OF_CODE = {
    **dict.fromkeys((Code.USAGE, Code.BAD_MODULE, Code.INVALID_SPEC), Exit.USAGE),
    Code.FOLDER_BUSY: Exit.BUSY,
    **dict.fromkeys(
        (
            Code.LOG_CORRUPT,
            Code.LOG_CONFLICT,
            Code.LOG_LOST,
            Code.LOG_UNREACHABLE,
            Code.STORAGE_FAILED,
            Code.NETWORK_FILESYSTEM,
            Code.SCHEMA_MISMATCH,
            Code.ARTIFACT_INTEGRITY,
        ),
        Exit.STORAGE,
    ),
    Code.INTERNAL_ERROR: Exit.INTERNAL,
}

_OF_STATUS = {
    "failed": Exit.FAILED,
    "cancelled": Exit.FAILED,
    "blocked": Exit.BLOCKED,
    "succeeded": Exit.SUCCEEDED,
}


def exit_of_code(code: Code) -> Exit:
    """The exit status of an error; whatever is not listed was refused."""
    return _OF_CODE.get(code, Exit.REFUSED)


def exit_of_status(status: str) -> Exit:
    """The exit status of a run that came to an end."""
    return _OF_STATUS[status]
