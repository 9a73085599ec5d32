"""Which error a run ends with, when there may be several.

- None: none. One: that one, as it is.
- Several: an ExceptionGroup, the body's (or the failed entry's) first, then those of leaving the layers, in that order.
- One that is no Exception (CancelledError, KeyboardInterrupt, SystemExit) is always raised as itself. The others are
  its `layer_errors` (`other_errors`), and each adds a note.
"""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.layers.schemas import CompositorSessionSnapshot
from dagbok.agents.layers.snapshots.schema import Snapshot

OTHERS, SNAPSHOT, OWN_SNAPSHOT = "layer_errors", "layer_session_snapshot", "layer_snapshot"


def ending(first: BaseException | None, later: Sequence[BaseException]) -> BaseException | None:
    """The error to raise. `first` is that of the body or of the entry."""
    found: list[BaseException] = [] if first is None else [first]
    for each in later:
        if not any(each is known for known in found):
            found.append(each)
    if len(found) < 2:
        return found[0] if found else None
    plain = [each for each in found if isinstance(each, Exception)]
    if len(plain) == len(found):
        return ExceptionGroup("A run of layers and the leaving of its layers failed", plain)
    leading = next(each for each in found if not isinstance(each, Exception))
    attach(leading, [each for each in found if each is not leading])
    return leading


def attach(error: BaseException, others: Sequence[BaseException]) -> None:
    """Make `others` readable on an error that must be raised as itself."""
    setattr(error, OTHERS, (*other_errors(error), *others))
    for each in others:
        error.add_note(f"Also, when layers were left: {type(each).__name__}: {each}")


def other_errors(error: BaseException) -> tuple[BaseException, ...]:
    """What else failed, where a cancellation or another error that is no Exception ended a run of layers."""
    found: tuple[BaseException, ...] = getattr(error, OTHERS, ())
    return found


def attach_snapshots(error: BaseException, plain: CompositorSessionSnapshot | None, own: Snapshot | None) -> None:
    """Make the snapshot of a run that no caller saw readable on the error, as version 1 and in the own format."""
    setattr(error, SNAPSHOT, plain)
    setattr(error, OWN_SNAPSHOT, own)


def snapshot_of(error: BaseException) -> CompositorSessionSnapshot | None:
    """The snapshot after an entry that failed: layers that were healthy stand in it as they were left."""
    found: CompositorSessionSnapshot | None = getattr(error, SNAPSHOT, None)
    return found


def own_snapshot_of(error: BaseException) -> Snapshot | None:
    """The same in the own format: after an entry or a disposal that failed. The one that this was tried with has been
    used; from this one it can be tried again."""
    found: Snapshot | None = getattr(error, OWN_SNAPSHOT, None)
    return found
