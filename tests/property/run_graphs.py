"""Small random graphs for the properties of runs, with limits so low that they are met."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from dagbok.events.canonical import Json
from dagbok.events.run.commands import SetLimits
from dagbok.events.run.values import Candidate, Condition, Limits, Spec, TaskLimits
from dagbok.testing import candidate, pin, task, when

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
VERIFIERS: Final = {
    "check": pin(),
    "both": pin("candidate", "decomposition"),
    "judge": pin("decomposition"),
    "proof": pin("candidate", assurance="formal"),
    "person": pin("candidate", "decomposition", assurance="human_review"),
}
KEYS: Final = (*("check",) * 4, *("both",) * 3, "judge", *("proof",) * 2, "person")
"""Of verifiers, as often as tasks name them."""
LARGE: Final = 100
"""Bytes of a large artifact: two of them are above some limits, one with all that is handed over beside it is not."""
BUDGETS: Final[dict[str, tuple[int | str | None, ...]]] = {
    "max_tokens": (None, None, None, 60, 200),
    "max_cost": (None, None, None, "3", "10"),
    "max_pending_verifications": (1_000, 1_000, 1),
    "max_artifact_bytes": (10_000, 10_000, LARGE),
    "max_total_artifact_bytes": (None, None, 3 * LARGE),
    "max_wall_ms": (None, None, None, 100_000),
    "max_context_bytes": (None, None, 3 * LARGE // 2),
    "max_open": (1, 3, 3),
    "max_tasks": (30, 30, 7),
}
"""What the limits of a run may be at first, each often the highest."""
LOW: Final[dict[str, tuple[int | str, ...]]] = {
    "max_tokens": (15, 30),
    "max_cost": ("0.5", "1.25"),
    "max_wall_ms": (500, 20_000),
    "max_total_artifact_bytes": (LARGE,),
}
"""Budgets that may be used up already when a run gets them."""
OUTPUTS: Final[tuple[Json, ...]] = (None, {"x": 0}, {"x": 1}, {"x": 2}, {"x": None}, {"y": 1})
RESERVATIONS: Final = (None, None, TaskLimits(tokens=15), TaskLimits(cost="0.5"), TaskLimits(tokens=25, cost="1.25"))
SIZES: Final = (None, TaskLimits(tokens=5, context_bytes=3 * LARGE // 2), TaskLimits(context_artifacts=1))

HIGHEST: Final = {
    "max_tokens": 10_000,
    "max_cost": "1000",
    "max_pending_verifications": 1_000,
    "max_artifact_bytes": 10_000,
    "max_total_artifact_bytes": 100_000,
    "max_wall_ms": 10_000_000,
    "max_context_bytes": 100_000,
}
"""Limits that nothing here comes up against."""


def limits(random: Random) -> Limits:
    """The limits that a run begins with."""
    return msgspec.structs.replace(LIMITS, **{name: random.choice(values) for name, values in BUDGETS.items()})


def set_limits(random: Random, now: Limits) -> SetLimits:
    """One of the limits raised, set where there was none or, which is refused, made smaller: named alone, or with all
    others as they are."""
    name = random.choice((*BUDGETS, *LOW))
    more = {name: random.choice((*BUDGETS[name], *LOW.get(name, ())))}
    alone = random.random() < 0.5
    return SetLimits(msgspec.structs.replace(LIMITS if alone else now, **more), (name,) if alone else None)


def graph(random: Random, prefix: str, others: tuple[str, ...] = (), keys: tuple[str, ...] = KEYS) -> tuple[Spec, ...]:
    """Up to four tasks that wait for earlier ones among them, and for some of the others."""
    specs: list[Spec] = []
    for place in range(random.randint(1, 4)):
        specs.append(a_task(random, f"{prefix}{place}", (*others, *(spec.id for spec in specs)), keys))
    return tuple(specs)


def branches(random: Random) -> tuple[Spec, ...]:
    """A task that decides, two that wait for what it says, and one that joins any of them or all."""
    chosen = random.choice(((1, 0), (1, 1)))
    ways = [
        task(f"t{place + 1}", depends_on=("t0",), when=(when("t0", "/x", way),)) for place, way in enumerate(chosen)
    ]
    return (task("t0"), *ways, task("t3", depends_on=("t1", "t2"), join=random.choice(("any", "any", "all"))))


def a_task(random: Random, id: str, known: tuple[str, ...], keys: tuple[str, ...] = KEYS) -> Spec:
    """A task that waits for some of the known ones, some of them under a condition, judged by some of the `keys`."""
    deps = tuple([random.choice(known) for _ in range(random.choice((0, 0, 1, 2)))]) if known else ()
    judges = [key for key in keys if "candidate" in VERIFIERS[key].judges]
    return task(
        id,
        depends_on=deps,
        when=tuple([_condition(random, dep) for dep in dict.fromkeys(deps) if random.random() < 0.4]),
        join=random.choice(("any", "any", "all")),
        verifier=random.choice(judges or KEYS),
        proposal_verifier=random.choice((None, None, None, "judge" if "judge" in keys else None)),
        child_verifiers=random.choice((None,) * 6 + (tuple(dict.fromkeys(keys)),)),
        priority=random.randint(-1, 1),
        timeout_ms=random.choice((None, 30_000)),
        max_attempts=random.choice((None, None, None, 1)),
        limits=random.choice((*RESERVATIONS, *SIZES)),
    )


def _condition(random: Random, dep: str) -> Condition:
    """About one number, as `OUTPUTS` has it or not."""
    conditions = (
        when(dep, "/x", 1),
        when(dep, "/x", 1, 2),
        when(dep, "/x", 1, op="not_in"),
        when(dep, "/x", 1, op="ge"),
        when(dep, "/x", 1, op="lt"),
        when(dep, "/y", 1),
        when(dep, "/x", None),
        when(dep, "/y", None, op="not_in"),
    )
    return random.choice(conditions)


def a_candidate(random: Random) -> Candidate:
    """One artifact or two, small, large or too large, with control values or without."""
    values = [random.choice((b"1", b"2", b"x" * LARGE, b"x" * (LARGE + 1))) for _ in range(random.choice((1, 1, 2)))]
    items = [item for place, value in enumerate(values) for item in candidate(value, name=f"part {place}").artifacts]
    return Candidate(tuple(items), candidate(outputs=random.choice(OUTPUTS)).outputs)
