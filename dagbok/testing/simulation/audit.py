"""What must hold of every log, owner, table and client when a schedule is over."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from dagbok.agents.scheduler.answers import answer_to
from dagbok.agents.scheduler.recover import NoSnapshots, Recovery
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.events.body import decode_body
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError
from dagbok.events.log.port import COMMANDS, Bounds, Record, StoredRecord, Topic
from dagbok.events.rule import GENESIS
from dagbok.events.run import events as e
from dagbok.events.run.commands import CLIENT_COMMANDS
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.partition import PartitionState
from dagbok.projections.reading import read_effective
from dagbok.projections.snapshots.keeper import SnapshotKeeper
from dagbok.results import result_of
from dagbok.testing.simulation.attempts import AttemptAudit, Decision
from dagbok.testing.simulation.history import said
from dagbok.testing.simulation.sessions import SessionAudit
from dagbok.testing.simulation.stations import PARTITION, Scheduler
from dagbok.testing.simulation.tables import dump, rebuilt
from dagbok.testing.simulation.violated import Violated
from dagbok.testing.simulation.world import World

T = TypeVar("T")

CODES: Final = frozenset(code.value for code in Code)
NEVER: Final = 10**9


class StillLog:
    """The log as it is now, with every command that was ever in it, for readers that need no network."""

    partitions = 1

    def __init__(self, world: World) -> None:
        self._log, self._commands = world.network.log, world.network.commands

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        """Never: the history is over."""
        raise NotImplementedError

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        """See `Log`."""
        if topic == COMMANDS:
            return self._commands[start : start + limit]
        return await self._log.read(topic, partition, start, limit)

    async def bounds(self, topic: Topic, partition: int) -> Bounds:
        """See `Log`."""
        return Bounds(0, len(self._commands)) if topic == COMMANDS else await self._log.bounds(topic, partition)

    async def wait(self, topic: Topic, partition: int, offset: int, timeout_s: float | None = None) -> bool:
        """Nothing comes any more."""
        return False

    async def delete_before(self, topic: Topic, partition: int, offset: int) -> None:
        """Nothing is deleted."""

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        """See `Log`."""
        return self._log.value_at(topic, partition, offset)

    def read_now(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        """See `Log`."""
        if topic == COMMANDS:
            return self._commands[start : start + limit]
        return self._log.read_now(topic, partition, start, limit)

    async def close(self) -> None:
        """Nothing to close."""


class Audit:
    """All checks of one schedule. Raises `Violated` at the first that fails."""

    def __init__(self, world: World) -> None:
        self._world, self._log = world, StillLog(world)
        self._loop = world.loop

    def check(self) -> None:
        """In an order in which the first failure says most."""
        try:
            self._decisions = self._wait(self._read())
            self._every_command_once()
            AttemptAudit(self._world, self._decisions).check()
            SessionAudit(self._told(), self._world.workload.is_session).check()
            self._outputs()
            self._clients()
            self._folds()
            self._ends()
            self._projections()
        except DagbokError as error:
            raise Violated("log", said(error)) from error

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _read(self) -> list[Decision]:
        _, commits = await read_effective(self._log, PARTITION, GENESIS, NEVER)
        return [Decision(each, decode_body(each.stored_body, each.seal.codec, each.seal.raw_size)) for each in commits]

    def _told(self) -> Iterator[tuple[str, e.Event]]:
        for decision in self._decisions:
            for event in decision.events:
                yield decision.commit.seal.stream or "", event

    def _every_command_once(self) -> None:
        offsets = [decision.commit.seal.command_offset for decision in self._decisions]
        wanted = list(range(len(self._world.network.commands)))
        _hold("one commit per command", offsets == wanted, f"effective commits are of commands {offsets}")
        for decision in self._decisions:
            _hold("a commit says something", bool(decision.events), f"events[{decision.commit.offset}] has no events")

    def _outputs(self) -> None:
        """Nothing left any owner that is not in the log."""
        by_offset = {decision.commit.offset: decision for decision in self._decisions}
        hashes = {decision.commit.hash for decision in self._decisions}
        for scheduler in self._world.schedulers:
            void = scheduler.confirmed - hashes
            _hold("outputs are confirmed", not void, f"{scheduler.name} told of {len(void)} commits that do not count")
        for sent in self._world.exchange.sent:
            found = by_offset.get(sent.opened_at[1])
            opened = [] if found is None else [each for each in found.events if isinstance(each, e.AttemptOpened)]
            is_so = (sent.task, sent.epoch) in [(each.task, each.epoch) for each in opened]
            _hold("outputs are confirmed", is_so, f"attempt {sent.epoch} of {sent.run}/{sent.task} was never opened")

    def _clients(self) -> None:
        """Every command of a client was decided once, and every answer is true."""
        by_offset = {decision.commit.offset: decision for decision in self._decisions}
        firsts: dict[str, int] = {}
        for decision in self._decisions:
            seal, first = decision.commit.seal, decision.first
            if seal.command_type not in CLIENT_COMMANDS or (isinstance(first, e.CommandRefused) and first.retry):
                continue
            if isinstance(first, e.CommandRepeated):
                is_so = firsts.get(seal.command_id, first.offset) == first.offset or seal.command_type == "StartRun"
                _hold(
                    "client commands once", is_so, f"{seal.command_id} repeats {first.offset}, not its first decision"
                )
            elif not (isinstance(first, e.CommandRefused) and first.code == Code.IDEMPOTENCY_CONFLICT):
                _hold("client commands once", seal.command_id not in firsts, f"{seal.command_id} was decided twice")
                firsts[seal.command_id] = decision.commit.offset
        for memory in self._world.memories:
            for order in memory.orders:
                for answer in order.answers:
                    told = by_offset.get(answer.at[1])
                    is_so = told is not None and (
                        _is_true(answer.accepted, answer.code, told) or isinstance(told.first, e.CommandRepeated)
                    )
                    _hold("answers are true", is_so, f"{order.command.id} heard {answer}")

    def _folds(self) -> None:
        """The owner, a fold from zero, a fold from the snapshot and the client know the same."""
        zero = _image(self._wait(Recovery(self._log, PARTITION, NoSnapshots(PARTITION)).fold()))
        world, leader = self._world, self._world.leader
        keeper = SnapshotKeeper(self._log, PARTITION, world.store.within(SNAPSHOT_CHUNKS), world.slots)
        loaded = self._wait(Recovery(self._log, PARTITION, keeper).fold())
        _same("the fold from the snapshot", zero, self._whole(loaded, keeper))
        if isinstance(leader, Scheduler):
            _same(f"the state of {leader.name}", zero, self._whole(leader.owner.state, leader.keeper))

    def _whole(self, state: PartitionState, keeper: SnapshotKeeper) -> dict[str, bytes]:
        for stream in sorted(keeper.cold):
            keeper.thaw(state, stream)
        return _image(state)

    def _ends(self) -> None:
        """Every run ended, or says in a code why it cannot go on; the workload agrees."""
        state = self._wait(Recovery(self._log, PARTITION, NoSnapshots(PARTITION)).fold())
        started = {memory.plan.name for memory in self._world.memories}
        reader = ArtifactReader(self._log, self._world.store)
        for run in state.runs.values():
            codes = {*run.blocked.values(), *run.failed.values(), *([run.blocked_by] if run.blocked_by else [])}
            _hold("reasons are codes", codes <= CODES, f"run {run.run} names {sorted(codes - CODES)}")
            says_why = run.status not in ("blocked", "failed") or bool(codes | set(run.cancelled.values()))
            _hold("reasons are codes", says_why, f"run {run.run} is {run.status} and does not say why")
            try:
                self._world.workload.check(result_of(run, reader)())
            except Exception as error:
                raise Violated("the check of the workload", f"run {run.run}: {said(error)}") from error
        missing = started - {run.run for run in state.runs.values()}
        _hold("every run starts", not missing, f"never started: {', '.join(sorted(missing))}{self._why_refused()}")

    def _why_refused(self) -> str:
        first = [decision.first for decision in self._decisions if decision.commit.seal.command_type == "StartRun"]
        refused = [event for event in first if isinstance(event, e.CommandRefused)]
        return f" ({refused[0].code}: {refused[0].reason})" if refused else ""

    def _projections(self) -> None:
        """What was projected on the way is what an independent rebuild gives."""
        fresh = self._wait(rebuilt(self._log))
        for table, rows in dump(self._world.tables).items():
            _hold("tables equal a rebuild", rows == fresh[table], f"{table}: {_difference(rows, fresh[table])}")


def _is_true(accepted: bool, code: str | None, told: Decision) -> bool:
    truth = answer_to(told.commit.seal.command_id, (PARTITION, told.commit.offset), told.events)
    return (truth.accepted, truth.code) == (accepted, code)


def _hold(check: str, holds: bool, what: str) -> None:
    if not holds:
        raise Violated(check, what)


def _image(state: PartitionState) -> dict[str, bytes]:
    """Everything of a state but how many void records its reader has skipped at the end."""
    position = msgspec.structs.replace(state.position, next_offset=0)
    rest = msgspec.json.encode((position, state.clock_ms, state.remembered))
    return {"partition": rest} | {stream: msgspec.json.encode(state.runs[stream]) for stream in sorted(state.runs)}


def _same(what: str, expected: dict[str, bytes], found: dict[str, bytes]) -> None:
    for part in sorted({*expected, *found}):
        here, there = expected.get(part, b""), found.get(part, b"")
        if here != there:
            at = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), 0)
            near = slice(max(0, at - 60), at + 60)
            raise Violated("equal folds", f"{what} differs in {part}: {here[near]!r} became {there[near]!r}")


def _difference(rows: Sequence[object], fresh: Sequence[object]) -> str:
    extra = [row for row in rows if row not in fresh]
    missing = [row for row in fresh if row not in rows]
    return f"{len(extra)} rows are wrong, {len(missing)} missing; {(extra or missing)[:1]}"
