"""What goes wrong in a simulation, how often, and the ledger of what did."""

from __future__ import annotations

from random import Random

import msgspec


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """What may go wrong. Every schedule draws its own share of it, up to these values, so that some are mild.

    `network`: the share of appends, reads and messages that are lost, late, doubled or not acknowledged (0 to 1).
    `crashes`: processes that vanish, at any await; another one takes their place later. `freezes`: processes that
    stand still, often longer than a lease, and go on as if nothing had happened. `restarts`: workers that are stopped
    in good order. `rivals`: owners that start while another one lives (on a log that cannot refuse). `clock_jumps`:
    clocks of processes or of the log that jump, by up to two minutes. `slow`: the share of calls that take longer than
    usual, at times longer than a lease. `lasting_s`: virtual seconds until all this ends; then every run has to end.
    """

    network: float = 0.15
    crashes: int = 4
    freezes: int = 2
    restarts: int = 1
    rivals: int = 1
    clock_jumps: int = 2
    slow: float = 0.15
    lasting_s: float = 40.0


NO_FAULTS = Faults(network=0, crashes=0, freezes=0, restarts=0, rivals=0, clock_jumps=0, slow=0, lasting_s=5.0)


class Incident(msgspec.Struct, frozen=True):
    """Something that happens to a process: `at_s` when, for `for_s`; `target` chooses among those that live then."""

    at_s: float
    kind: str
    target: float
    for_s: float = 0.0
    by_ms: int = 0


def incidents_of(random: Random, faults: Faults) -> tuple[Incident, ...]:
    """The incidents of one schedule, in the order of their times."""
    found = []
    numbers = {
        "crash scheduler": random.randint(0, (faults.crashes + 1) // 2),
        "crash worker": random.randint(0, faults.crashes),
        "crash client": random.randint(0, faults.crashes // 2),
        "crash projector": random.randint(0, faults.crashes // 2),
        "freeze scheduler": random.randint(0, faults.freezes),
        "freeze worker": random.randint(0, faults.freezes),
        "restart worker": random.randint(0, faults.restarts),
        "rival scheduler": random.randint(0, faults.rivals),
        "clock of log": random.randint(0, faults.clock_jumps),
        "clock of process": random.randint(0, faults.clock_jumps),
    }
    for kind, number in numbers.items():
        for _ in range(number):
            found.append(_incident(random, kind, faults.lasting_s))
    return tuple(sorted(found, key=lambda incident: incident.at_s))


def _incident(random: Random, kind: str, lasting_s: float) -> Incident:
    # Most of the work is done early.
    at_s = lasting_s * random.random() ** 2
    for_s = random.choice((0.05, 1.0, 5.0, 20.0)) * (0.5 + random.random())
    by_ms = int(random.choice((-1, 1)) * random.choice((50, 2_000, 20_000, 120_000)) * random.random())
    return Incident(round(at_s, 3), kind, random.random(), round(for_s, 3), by_ms)


class Ledger:
    """Decides what goes wrong on the way, and remembers what did. Every fault has a number; those in `muted` are left
    out, which is how a history is shortened."""

    def __init__(self, random: Random, chance: float, muted: frozenset[int]) -> None:
        self._random, self._chance, self._muted = random, chance, muted
        self._number = 0
        self.calm = False
        self.injected: list[tuple[int, str]] = []

    def strikes(self, *kinds: str, weight: float = 1.0) -> str | None:
        """What goes wrong now, if anything."""
        if self.calm or self._random.random() >= self._chance * weight:
            return None
        kind = kinds[int(self._random.random() * len(kinds))]
        self._number += 1
        if self._number in self._muted:
            return None
        self.injected.append((self._number, kind))
        return kind
