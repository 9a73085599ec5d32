"""Random specs, limits, outcomes and usages, as they stand in the commands of random histories (`histories.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec

from dagbok.events.canonical import Json, sha256_hex
from dagbok.events.run.values import (
    ArtifactItem,
    Candidate,
    Condition,
    Decompose,
    Limits,
    OutcomeData,
    Spec,
    TaskLimits,
    Usage,
)
from dagbok.projections.task_graph.state import RunState, TaskNode
from dagbok.testing.make import CHECK, blocked, candidate, decompose, task, when

LIMITS: Final = Limits(
    max_open=3, max_attempts=2, max_lost=2, max_verifier_errors=2, max_tasks=60, backoff_base_ms=100, backoff_max_ms=400
)
BIG_BYTES: Final = 1 << 20
_MOST: Final = 2**53
AMPLE: Final = Limits(max_tokens=_MOST, max_cost="9" * 18, max_wall_ms=_MOST, max_total_artifact_bytes=_MOST)
"""The budgets whose end blocks a run, as high as they can be set."""


class RandomValues:
    """Values, one after the other; no two tasks get the same name."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0

    def name(self) -> str:
        """The id of a new task."""
        self._names += 1
        return f"t{self._names}"

    def limits(self) -> Limits:
        """Half of the runs have no budget; the others one or more that may end."""
        random = self._random
        if random.random() < 0.5:
            return LIMITS
        return msgspec.structs.replace(
            LIMITS,
            max_tokens=random.choice((None, 300, 2_000)),
            max_cost=random.choice((None, "0.50", "3")),
            max_wall_ms=random.choice((None, None, 3_000, 20_000)),
            max_pending_verifications=random.choice((1, 2, 1_000)),
            max_total_artifact_bytes=random.choice((None, None, 2 * BIG_BYTES)),
            max_context_bytes=random.choice((None, None, BIG_BYTES)),
        )

    def raised(self, now: Limits) -> Limits:
        """Some of the limits, higher."""
        random = self._random
        more: dict[str, int | str | None] = {"max_open": now.max_open + 1}
        if now.max_tokens is not None:
            more["max_tokens"] = random.choice((now.max_tokens * 2, None))
        if now.max_cost is not None:
            more["max_cost"] = random.choice((f"1{now.max_cost}", None))
        if now.max_wall_ms is not None:
            more["max_wall_ms"] = now.max_wall_ms * 3
        if now.max_total_artifact_bytes is not None:
            more["max_total_artifact_bytes"] = now.max_total_artifact_bytes * 2
        return msgspec.structs.replace(now, **more)

    def usage(self) -> Usage:
        """Nothing, or something with a cost that binary fractions do not hold."""
        random = self._random
        if random.random() < 0.5:
            return Usage()
        return Usage(random.choice((0, 7, 120)), random.choice(("0", "0.10", "0.07", "1.0")))

    def specs(self, ids: Sequence[str], others: Sequence[str] = ()) -> list[Spec]:
        """A task per id, which waits for some of those before it, and for one of the others."""
        random = self._random
        return [
            self.spec(id, tuple(random.sample(ids[:place], min(place, random.randrange(3)))), others)
            for place, id in enumerate(ids)
        ]

    def spec(self, id: str, depends_on: tuple[str, ...], others: Sequence[str] = ()) -> Spec:
        """A task. Edges have a condition at times, which the outputs of `outcome` may meet."""
        random = self._random
        if others and random.random() < 0.3:
            depends_on = (*depends_on, random.choice(others))
        conditions = [self._condition(dep) for dep in depends_on if random.random() < 0.4]
        return task(
            id,
            depends_on=depends_on,
            when=tuple(conditions),
            goal=f"do {id}",
            proposal_verifier=random.choice((None, None, "judge")),
            child_verifiers=random.choice((None, None, None, (CHECK, "judge"))),
            priority=random.randrange(3),
            timeout_ms=random.choice((None, 5_000)),
            lease_ms=10_000,
            limits=self._task_limits(),
        )

    def outcome(self, run: RunState, node: TaskNode) -> OutcomeData:
        """What a worker returns."""
        random = self._random
        chance = random.random()
        if chance < 0.06:
            return blocked("ask Ann")
        if chance < 0.36:
            return self._proposal(run)
        if chance < 0.5:
            stored = ArtifactItem("big", sha256_hex(node.id.encode()), BIG_BYTES, "text/plain")
            return Candidate((*candidate({"of": node.id}).artifacts, stored))
        outputs: Json = {"n": random.randrange(3), "say": random.choice(("yes", "no"))}
        return candidate({"of": node.id, "epoch": node.epoch}, outputs=outputs if random.random() < 0.7 else None)

    def _proposal(self, run: RunState) -> Decompose:
        random = self._random
        ids = [self.name() for _ in range(random.randrange(0, 4))]
        others = [node.id for node in run.tasks.values() if node.status != "superseded" or random.random() < 0.2]
        reuse = tuple(random.sample(others, min(len(others), random.randrange(3))))
        stale = run.graph_revision - 1 if random.random() < 0.1 else None
        return decompose(*self.specs(ids, others), reuse=reuse, expected_graph_revision=stale)

    def _condition(self, dependency: str) -> Condition:
        return self._random.choice(
            (
                when(dependency, "/say", "yes"),
                when(dependency, "/say", "no", None, op="not_in"),
                when(dependency, "/n", 1, op="ge"),
            )
        )

    def _task_limits(self) -> TaskLimits | None:
        random = self._random
        if random.random() < 0.6:
            return None
        return TaskLimits(
            tokens=random.choice((0, 100)),
            cost=random.choice(("0", "0.25")),
            context_bytes=random.choice((*(None,) * 6, 120)),
            context_artifacts=random.choice((*(None,) * 6, 1)),
        )
