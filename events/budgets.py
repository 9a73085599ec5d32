"""The limits of a run as people write them; `events/run/values.py` has them as the log keeps them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, TypedDict

import msgspec
from pydantic import AfterValidator, Field

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.numbers import MAX_COUNT, Cost, Integer
from dagbok.events.run import values
from dagbok.events.written import TITLE, Written

Reachable = Annotated[Integer, Field(gt=0, le=MAX_COUNT)]


def _above_zero(cost: Decimal | int | str) -> Decimal | int | str:
    """With nothing to spend, no work that reserves nothing could begin either."""
    if Decimal(cost) == 0:
        raise ValueError("a limit of zero lets nothing run; none is no limit")
    return cost


class Limits(Written, title=TITLE + "Limits"):
    """What a run may use and how it may grow. Counts, except `*_ms` (milliseconds), `*_bytes` and `max_cost` (a decimal
    number as in `Usage`, in the currency of whoever reports it). None: no limit.

    Which limits were named is known: a default that is written out counts, one that is left out does not. Raises
    `pydantic.ValidationError` for what is no such number, zero and below among it.

    - `max_tasks`, `max_edges`: of the graph; `max_children`: of one decomposition.
    - `max_open`: attempts at once. `max_pending_verifications`: while so many tasks await a verdict, no more work
      opens.
    - `max_attempts`: how many may fail before a task that names no number of its own does. `max_lost`,
      `max_verifier_errors`: the same for crashes of its processes, and for errors of its verifier.
    - `backoff_base_ms`, `backoff_max_ms`: the wait between attempts, at first and at most.
    - `max_artifact_bytes`: of one artifact; `max_total_artifact_bytes`: of all that candidates of the run hand over.
    - `max_wall_ms`: since the start of the run, pauses included.
    - `max_tokens`, `max_cost`: what all attempts use, as they report it.
    - `max_context_bytes`: what any worker may be handed.
    """

    max_tasks: Reachable = 100_000
    max_edges: Reachable = 400_000
    max_children: Reachable = 10_000
    max_open: Reachable = 1_000
    max_attempts: Reachable = 3
    max_lost: Reachable = 10
    max_verifier_errors: Reachable = 3
    backoff_base_ms: Reachable = 200
    backoff_max_ms: Reachable = 60_000
    max_pending_verifications: Reachable = 1_000
    max_artifact_bytes: Reachable = 1024**3
    max_total_artifact_bytes: Reachable | None = None
    max_wall_ms: Reachable | None = None
    max_tokens: Reachable | None = None
    max_cost: Annotated[Cost, AfterValidator(_above_zero)] | None = None
    max_context_bytes: Reachable | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The limits that were written out and are not none, in the order of their declaration."""
        fields = type(self).model_fields
        return tuple([name for name in fields if name in self.model_fields_set and getattr(self, name) is not None])


class LimitChanges(TypedDict, total=False):
    """The same by keyword, for those that change."""

    max_tasks: int
    max_edges: int
    max_children: int
    max_open: int
    max_attempts: int
    max_lost: int
    max_verifier_errors: int
    backoff_base_ms: int
    backoff_max_ms: int
    max_pending_verifications: int
    max_artifact_bytes: int
    max_total_artifact_bytes: int
    max_wall_ms: int
    max_tokens: int
    max_cost: Cost
    max_context_bytes: int


def encode_limits(limits: Limits) -> values.Limits:
    """As the log keeps them. Raises `InvalidInput` (`usage`) for what are no `Limits`, a mapping among it."""
    if not isinstance(limits, Limits):
        kind = f"{type(limits).__module__}.{type(limits).__qualname__}"
        raise InvalidInput(
            f"limits are a dagbok.Limits, not {kind}", code=Code.USAGE, advice="from dagbok import Limits"
        )
    return msgspec.convert(limits.model_dump(), values.Limits)


def limits_in_force(limits: values.Limits) -> Limits:
    """As people read them; each counts as named."""
    return Limits.model_construct(None, **msgspec.structs.asdict(limits))
