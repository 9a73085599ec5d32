"""What the checks look at, and what they know of it so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dagbok.agents.doctor.finding import Commands, plain
from dagbok.agents.doctor.look import Look
from dagbok.agents.kafka.offsets import Offsets
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_settings import KafkaSettings


@dataclass
class Site:
    """A deployment. `pools`: to look at in any case; `database`: of the tables, if there are any; `artifacts`: their
    place, where snapshots are too; `command`: how commands are advised. `off_ms`: how far the broker's clock is ahead
    of this machine's; `looks`: at each partition; none of them until that was measured and looked at."""

    settings: KafkaSettings
    log: KafkaLog
    offsets: Offsets
    pools: Sequence[str]
    database: str | None
    artifacts: str | None
    command: Commands = plain
    off_ms: int = 0
    looks: Sequence[Look] = ()

    @property
    def prefix(self) -> str:
        """What the names of all topics and groups start with."""
        return self.settings.prefix

    @property
    def now_ms(self) -> int:
        """The broker's time: deadlines count in it."""
        return system_ms() + self.off_ms

    def start(self, role: str, pool: str | None = None) -> str:
        """The advice to start a role, of a pool if it has one."""
        return f"start one: {self.command(role, *([f'--pool {pool}', '--import …'] if pool is not None else []))}"
