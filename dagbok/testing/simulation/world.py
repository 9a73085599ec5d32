"""One schedule: the simulated processes, what happens to them, and the quiet time in which every run has to end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final, TypeVar

from dagbok.events.errors import DagbokError
from dagbok.events.log.port import COMMANDS, EVENTS, Topic
from dagbok.projections.artifacts.memory import MemoryBlobs
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.snapshots.manifest import Slots
from dagbok.projections.store import Tables
from dagbok.testing.simulation.clients import Client, Memory
from dagbok.testing.simulation.exchange import Exchange
from dagbok.testing.simulation.faults import Incident, Ledger
from dagbok.testing.simulation.history import History, said
from dagbok.testing.simulation.loop import die, here, simulated_loop
from dagbok.testing.simulation.named import not_given
from dagbok.testing.simulation.network import EPOCH_MS, LONGEST_FAULT_S, Network, at_once
from dagbok.testing.simulation.plan import Plan, Workload
from dagbok.testing.simulation.slots import MemorySlots
from dagbok.testing.simulation.stations import PARTITION, Projecting, Scheduler, Station, Workers
from dagbok.testing.simulation.violated import Violated

S = TypeVar("S", bound=Station)

LOOK_S: Final = 0.5
QUIET_LIMIT_S: Final = 3_600.0
"""When everything works, every run has to end within this (virtual) time. The longest pause of any actor is ten
minutes."""
SETTLED: Final = ("succeeded", "failed", "cancelled", "blocked")


class World:
    """Implements `Surroundings` and `Hands`."""

    def __init__(self, plan: Plan, workload: Workload, tables: Tables, *, trace: bool = False) -> None:
        self.plan, self.workload, self.tables = plan, workload, tables
        self.loop = simulated_loop(Random(f"loop/{plan.seed}"))
        self.history = History(self.loop.time, keep=trace)
        self.ledger = Ledger(Random(f"faults/{plan.seed}"), plan.network, plan.muted)
        self.network = Network(self.loop, Random(f"network/{plan.seed}"), self.ledger, refuses=plan.refuses)
        self.network.saw = self.history.landed
        self.exchange = Exchange(self.network)
        self.store = ArtifactStore(MemoryBlobs(self.network.clock_ms))
        self.slots: Slots = MemorySlots()
        self.random = Random(f"world/{plan.seed}")
        self.memories = [Memory(run) for run in plan.runs]
        self.schedulers: list[Scheduler] = []
        self.stations: dict[str, Station] = {}
        self.gone: set[str] = set()
        self.skewed: set[str] = set()
        self.calm_from_ms = 2**60
        self._names: dict[str, int] = {}
        self._due_s: dict[str, float] = {}

    @property
    def calm(self) -> bool:
        """Nothing goes wrong any more, but for what functions do themselves."""
        return self.ledger.calm

    @property
    def leader(self) -> Scheduler | None:
        """The scheduler that was started last, while it lives."""
        return self.schedulers[-1] if self.schedulers and self.schedulers[-1].lives else None

    @property
    def projecting(self) -> Projecting | None:
        """The projector, while it lives."""
        found = self.stations.get("projector")
        return found if isinstance(found, Projecting) and found.lives else None

    def is_gone(self, process: str) -> bool:
        """See `Surroundings`."""
        return process in self.gone

    async def vanish(self) -> None:
        """See `Hands`."""
        await die()

    async def linger(self, random: Random, lease_s: float) -> None:
        """See `Hands`."""
        slow = random.random() < self.plan.faults.slow
        await asyncio.sleep(random.choice((0.3, 1.0, 3.0)) * lease_s * random.random() if slow else random.random() / 4)

    def tell(self, what: str) -> None:
        """See `Hands`."""
        self.history.tell(here().name, what)

    def run(self) -> None:
        """Live through the schedule. Raises `Violated`; `audit.py` has the checks of what is left behind."""
        try:
            self.loop.run_until_complete(self._live())
        except Violated:
            raise
        except Exception as error:
            raise Violated("ends", said(error)) from error
        if self.loop.errors:
            raise Violated("callbacks", self.loop.errors[0])

    def close(self) -> None:
        """Let go of everything."""
        self.loop.close()

    async def _live(self) -> None:
        self._supervise()
        pending = list(self.plan.incidents)
        while self.loop.time() < self.plan.calm_from_s:
            now_s = self.loop.time()
            next_s = min(now_s + LOOK_S, self.plan.calm_from_s, *[incident.at_s for incident in pending[:1]])
            await asyncio.sleep(max(0.0, next_s - now_s))
            while pending and pending[0].at_s <= self.loop.time():
                self._happen(pending.pop(0))
            self._supervise()
        self._calm_down()
        while not self._is_settled():
            await asyncio.sleep(LOOK_S)
            self._supervise()
            if self.loop.time() > self.plan.calm_from_s + QUIET_LIMIT_S:
                raise Violated("liveness", self._open_ends())

    # What happens

    def _happen(self, incident: Incident) -> None:
        kind, _, whom = incident.kind.partition(" ")
        if incident.kind == "clock of log":
            self.network.skew_ms += incident.by_ms
            self.history.tell("fault", f"the log's clock jumps by {incident.by_ms} ms")
        elif incident.kind == "clock of process":
            station = _chosen(list(self.stations.values()), incident)
            if station is not None:
                station.skew_ms = incident.by_ms
                self.skewed.add(station.name)
                self.history.tell("fault", f"the clock of {station.name} is {incident.by_ms} ms off")
        elif kind == "rival":
            if not self.plan.refuses:
                self._start_scheduler("although another one lives")
        else:
            self._strike(kind, _chosen(self._by_role(whom), incident), incident)

    def _strike(self, kind: str, station: Station | None, incident: Incident) -> None:
        if station is None:
            return
        if kind == "crash":
            self._kill(station, "crashes")
        elif kind == "freeze" and not station.place.frozen:
            self.history.tell("fault", f"{station.name} stands still for {incident.for_s} s")
            self.loop.freeze(station.place)
            self.loop.call_later(incident.for_s, self._thaw, station)
        elif kind == "restart" and isinstance(station, Workers):
            self.history.tell("fault", f"{station.name} is stopped in good order")
            station.stop()

    def _thaw(self, station: Station) -> None:
        if station.place.alive and station.place.frozen:
            self.history.tell("fault", f"{station.name} goes on")
            self.loop.thaw(station.place)

    def _kill(self, station: Station, how: str) -> None:
        self.history.tell("fault", f"{station.name} {how}")
        self.loop.kill(station.place)
        self.gone.add(station.place.name)

    def _calm_down(self) -> None:
        """From now on everything works: one owner is left, and workers that may lack a key are replaced."""
        self.history.tell("world", "from now on everything works")
        self.ledger.calm = True
        self.calm_from_ms = EPOCH_MS + int((self.loop.time() + LONGEST_FAULT_S) * 1000)
        for station in self._all():
            station.skew_ms = 0
            self._thaw(station)
            if isinstance(station, Workers) and station.lives and not station.name.startswith("worker-1."):
                station.stop()
        for scheduler in self.schedulers[:-1]:
            if scheduler.lives:
                self._kill(scheduler, "is told to end")

    # Who watches over the processes

    def _supervise(self) -> None:
        for station in self._all():
            if station.failure is not None and station.place.alive:
                self._failed(station, station.failure)
        self._keep_one_scheduler()
        slots = [*[f"worker-{number}" for number in range(1, self.plan.workers + 1)], "projector", "client"]
        for slot in slots:
            station_of_slot = self.stations.get(slot)
            if (station_of_slot is None or not station_of_slot.lives) and self._is_due(slot):
                self._start(slot)

    def _failed(self, station: Station, failure: BaseException) -> None:
        if not (isinstance(failure, OSError) or (isinstance(failure, DagbokError) and failure.retry)):
            raise Violated("processes", f"{station.name} ended: {said(failure)}") from failure
        self._kill(station, f"ends: {said(failure)}")

    def _keep_one_scheduler(self) -> None:
        leader = self.leader
        if leader is None or (leader.place.frozen and not self.plan.refuses):
            if self._is_due("scheduler"):
                self._start_scheduler("takes over")
        else:
            self._due_s.pop("scheduler", None)
            for stale in self.schedulers[:-1]:
                if stale.lives and not stale.place.frozen and self._is_due(stale.name):
                    self._kill(stale, "is told to end")

    def _is_due(self, what: str) -> bool:
        """A while after this was asked for the first time: nobody notices at once."""
        now_s = self.loop.time()
        pause_s = 0.0 if now_s == 0 else LOOK_S if self.calm else 10 * self.random.random() ** 2
        if now_s < self._due_s.setdefault(what, now_s + pause_s):
            return False
        del self._due_s[what]
        return True

    def _start_scheduler(self, why: str) -> None:
        plan = self.plan
        scheduler = Scheduler(
            self, self._name("scheduler"), due_bytes=plan.snapshot_bytes, cold_after_ms=plan.cold_after_ms
        )
        scheduler.place.on_death = partial(self._kill, scheduler, "dies in the middle of a snapshot")
        self.schedulers.append(scheduler)
        self.stations[scheduler.name] = scheduler
        self.history.tell("world", f"{scheduler.name} {why}")
        scheduler.start()

    def _start(self, slot: str) -> None:
        name = self._name(slot)
        self.history.tell("world", f"{name} starts")
        if slot == "projector":
            projecting = Projecting(self, name, self.tables, self.plan.batch_records)
            self.stations[slot] = projecting
            projecting.start()
        elif slot == "client":
            client = Client(self, name, self.memories, self.workload, self.plan.seed)
            self.stations[slot] = client
            client.start()
        else:
            workers = Workers(self, name, self.workload.registry(self.plan.seed, name, self), self.workload.pools)
            workers.place.on_death = partial(self._kill, workers, "dies of its task")
            self.stations[slot] = workers
            workers.start()

    def _name(self, slot: str) -> str:
        number = self._names[slot] = self._names.get(slot, 0) + 1
        return f"{slot}.{number}"

    def _all(self) -> Sequence[Station]:
        return tuple(self.stations.values())

    def _by_role(self, role: str) -> list[Station]:
        return [each for each in self._all() if each.lives and each.name.startswith(role)]

    # When it is over

    def _is_settled(self) -> bool:
        leader, projecting = self.leader, self.projecting
        if leader is None or projecting is None or not all(memory.finished for memory in self.memories):
            return False
        if any(not order.answers for memory in self.memories for order in memory.orders):
            return False
        state = leader.owner.state
        if any(run.status not in SETTLED for run in state.runs.values()):
            return False
        decided = leader.owner.recovered.is_set() and not leader.owner.between_batches.locked()
        seen = (state.position.last_command_offset + 1, projecting.projector.position.next_offset)
        return decided and seen == (self._end(COMMANDS), self._end(EVENTS))

    def _end(self, topic: Topic) -> int:
        return at_once(self.network.log.bounds(topic, PARTITION)).end

    def _open_ends(self) -> str:
        leader = self.leader
        if leader is None:
            return "there is no scheduler"
        runs = {
            run.run: {
                task.id: task.status for task in run.tasks.values() if task.status not in ("verified", "cancelled")
            }
            for run in leader.owner.state.runs.values()
            if run.status not in SETTLED
        }
        asked = [order.command.id for memory in self.memories for order in memory.orders if not order.answers]
        seen = leader.owner.state.position.last_command_offset + 1
        return (
            f"{not_given(leader.owner.state.runs.values())}"
            f"after {QUIET_LIMIT_S:.0f} quiet seconds: open runs {runs}, unanswered {asked}, commands decided up to "
            f"{seen} of {self._end(COMMANDS)}, clients done {[memory.finished for memory in self.memories]}"
        )


def _chosen(stations: Sequence[S], incident: Incident) -> S | None:
    living = [station for station in stations if station.lives]
    return living[int(incident.target * len(living))] if living else None
