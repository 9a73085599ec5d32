"""Small random graphs for the properties of runs, with limits so low that they are met."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from dagbok.events.run.values import Limits, Spec
from dagbok.testing import pin, task

LIMITS: Final = Limits(
    max_tasks=30,
    max_edges=60,
    max_children=4,
    max_open=3,
    max_attempts=2,
    max_lost=2,
    max_verifier_errors=2,
    backoff_base_ms=100,
    backoff_max_ms=1_000,
)
VERIFIERS: Final = {"check": pin(), "judge": pin("decomposition"), "both": pin("candidate", "decomposition")}


@st.composite
def graphs(draw: st.DrawFn, prefix: str, others: tuple[str, ...] = ()) -> tuple[Spec, ...]:
    """Up to four tasks that wait for earlier ones among them, and for some of the others."""
    specs: list[Spec] = []
    for place in range(draw(st.integers(1, 4))):
        known = (*others, *(spec.id for spec in specs))
        deps = draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
        specs.append(
            task(
                f"{prefix}{place}",
                depends_on=tuple(deps),
                verifier=draw(st.sampled_from(("check", "check", "both"))),
                proposal_verifier=draw(st.sampled_from((None, None, "judge"))),
                priority=draw(st.integers(-1, 1)),
                timeout_ms=draw(st.sampled_from((None, 30_000))),
                max_attempts=draw(st.sampled_from((None, None, 1))),
            )
        )
    return tuple(specs)
