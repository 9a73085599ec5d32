"""All metrics of the roles, with what they mean: this is the only place that names one (`docs/metrics.md`).

They are counted beside the decisions, from confirmed commits and from what the parts of a process know of themselves.
Deciders know nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from dagbok.agents.kafka.waiting import Waiting

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400)
"""From a function that only computes to one that works for hours."""


class Metrics:
    """The metrics of one process. `role` is told by `dagbok_process_info`."""

    def __init__(self, role: str) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        Info("dagbok_process", "The role and version of this process.", registry=registry).info(
            {"role": role, "version": version("dagbok")}
        )
        self.lag = Gauge(
            "dagbok_lag_records",
            "Records of a partition that the role which reads it has not done with. Of commands: not decided; of "
            "events: not in the tables; of work and review topics: sent to a pool and not taken up.",
            ["role", "topic", "partition"],
            registry=registry,
        )
        self.held = Gauge(
            "dagbok_held_partitions", "Partitions that this process looks after.", ["role"], registry=registry
        )
        self.halted = Gauge(
            "dagbok_halted_partitions",
            "Partitions of this process at which going on would be wrong: lost or damaged records, a clock that is far "
            "off, events of a newer dagbok. Somebody has to act; the log of the process says on what.",
            ["role"],
            registry=registry,
        )
        self.decisions = Counter(
            "dagbok_decisions_total",
            "Commands that were decided, by type and outcome: accepted, refused, or repeated (decided before).",
            ["type", "outcome"],
            registry=registry,
        )
        self.refusals = Counter(
            "dagbok_refusals_total", "Commands that were refused, by code.", ["code"], registry=registry
        )
        self.dead_letters = Counter(
            "dagbok_dead_letters_total",
            "Commands that could not be decoded or handled, by code. Their bytes are kept: dagbok dead-letters ls.",
            ["code"],
            registry=registry,
        )
        self.attempts = Counter(
            "dagbok_attempts_total",
            "Attempts that ended, by kind (work, verify) and end: the outcome of a worker (candidate, decompose, "
            "blocked), the verdict of a verifier (pass, fail, inconclusive, error), failed, lost, released or closed.",
            ["kind", "end"],
            registry=registry,
        )
        self.attempt_latency = Histogram(
            "dagbok_attempt_seconds",
            "From the opening of an attempt to its end, by the clock of the log.",
            ["kind"],
            buckets=SECONDS,
            registry=registry,
        )
        self.schedule_to_start = Histogram(
            "dagbok_schedule_to_start_seconds",
            "From the opening of an attempt to its claim by a process. An attempt that ends without one (a pure worker "
            "or verifier that was done within its grace) is not in it.",
            ["kind"],
            buckets=SECONDS,
            registry=registry,
        )
        self.retries = Counter(
            "dagbok_retries_total",
            "Attempts that have to be repeated, by kind and cause: failed, lost, or rejected by a verdict or a rule of "
            "the graph.",
            ["kind", "cause"],
            registry=registry,
        )
        self.queue_depth = Gauge(
            "dagbok_queue_depth_attempts",
            "Attempts that are open and not claimed, in the partitions that this process decides for. Pools that have "
            "no topic, since nobody has served them yet, are one: (no topic).",
            ["pool", "kind"],
            registry=registry,
        )
        self.waiting = Waiting(self.queue_depth)
        """What `queue_depth` shows."""
        self.takeovers = Counter(
            "dagbok_takeovers_total",
            "Partitions of commands that this process has begun to decide for.",
            registry=registry,
        )
        self.void_commits = Counter(
            "dagbok_void_commits_total",
            "Records of events that do not count, since their writer had been overtaken, as the projector met them.",
            ["partition"],
            registry=registry,
        )
        self.projected = Counter(
            "dagbok_projected_events_total",
            "Events that were written into the tables.",
            ["partition"],
            registry=registry,
        )
        self.garbage = Counter(
            "dagbok_garbage_records_total",
            "Records of work, review and replies topics that could not be read, and were left out.",
            ["topic"],
            registry=registry,
        )
        self.checks = Counter(
            "dagbok_progress_checks_total",
            "How often this process has looked whether its partitions progress.",
            registry=registry,
        )
        self.not_sent = Counter(
            "dagbok_not_sent_records_total",
            "Dispatches, hints and answers that the broker did not take. They are repeated; many say that it is in "
            "trouble.",
            registry=registry,
        )

    def text(self) -> bytes:
        """All values in the text format of Prometheus."""
        self.waiting.show()
        return generate_latest(self.registry)


class Totals:
    """Counters that follow totals which somebody else counts. A total that is lower than before has begun anew."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, tuple[tuple[str, str], ...]], int] = {}

    def follow(self, counter: Counter, total: int, labels: Mapping[str, str] | None = None) -> None:
        """Count what the total has grown by since the last call."""
        labels = labels or {}
        key = id(counter), tuple(sorted(labels.items()))
        seen = self._seen.get(key, 0)
        grown = total - seen if total >= seen else total
        self._seen[key] = total
        child = counter.labels(**labels) if labels else counter
        child.inc(grown)
