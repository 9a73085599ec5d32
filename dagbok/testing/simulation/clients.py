"""A simulated client: starts runs, steers them, repeats itself, and is told what became of it.

It knows what it has asked for even after a crash, as a client with a durable outbox of its own does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec

from dagbok.agents.workers.outbox import Outbox
from dagbok.events.body import decode_body
from dagbok.events.envelope import Answer, Command, Reply, Sender, run_command
from dagbok.events.errors import DagbokError
from dagbok.events.ids import run_stream
from dagbok.events.run.commands import RunCommand
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.reading import read_effective
from dagbok.projections.task_graph.state import RunState
from dagbok.testing.simulation.exchange import QueueEnd
from dagbok.testing.simulation.network import Connection
from dagbok.testing.simulation.plan import RunPlan, Workload
from dagbok.testing.simulation.stations import PARTITION, Station, Surroundings

SENDER: Final = Sender("acme", "docs", "user:ann")
LOOK_S: Final = 3.0
MENDS: Final = 6
"""How often a person steps in for one run, when everything works; then it may stay as it is."""


class Order(msgspec.Struct):
    """A command and the answers to it. `altered`: another content than the first one had under this id."""

    command: Command
    answers: list[Answer] = msgspec.field(default_factory=list)
    altered: bool = False


class Memory(msgspec.Struct):
    """What a client remembers of one run, whatever happens to its process."""

    plan: RunPlan
    orders: list[Order] = msgspec.field(default_factory=list)
    step: int = 0
    mends: int = 0
    finished: bool = False


class Client(Station):
    """One process for all runs of a schedule."""

    def __init__(
        self, around: Surroundings, name: str, memories: Sequence[Memory], workload: Workload, seed: int
    ) -> None:
        super().__init__(around, name)
        self._around, self._memories, self._workload = around, memories, workload
        self._log = Connection(around.network, self.place)
        self._address = f"client/{name}"
        self._outbox = Outbox(self._log, self._address, self.now_s)
        self._queue = QueueEnd(around.exchange, self.place)
        self._random = Random(f"client/{seed}/{name}")
        self.state = PartitionState(PARTITION)

    def start(self) -> None:
        """Go on with everything that was begun."""
        self._queue.listen(self._address, self._replied)
        self.serve(self._outbox.run())
        for memory in self._memories:
            self.serve(self._script(memory))

    def _replied(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            if isinstance(reply, Answer):
                self._outbox.answered(reply)

    async def _script(self, memory: Memory) -> None:
        for order in memory.orders:
            if not order.answers:
                await self._ask(order)
        if not memory.orders:
            await self._until(memory.plan.at_s)
            await self._order(memory, memory.plan.start)
        while memory.step < len(memory.plan.acts_at_s):
            await self._until(memory.plan.acts_at_s[memory.step])
            memory.step += 1
            await self._act(memory, calm=False)
        while not memory.finished:
            await asyncio.sleep(LOOK_S)
            if self._around.network.ledger.calm:
                memory.finished = memory.mends >= MENDS or not await self._act(memory, calm=True)
                memory.mends += 1
        await asyncio.Event().wait()

    async def _until(self, at_s: float) -> None:
        await asyncio.sleep(max(0.0, at_s - self.loop.time()))

    async def _act(self, memory: Memory, *, calm: bool) -> bool:
        """True when there may be more to do."""
        run = await self._look(memory)
        if run is None or not run.exists:
            return False
        command = self._workload.act(run, self._random, calm=calm)
        if command is not None:
            await self._order(memory, command)
        return command is not None or run.status == "running"

    async def _order(self, memory: Memory, command: RunCommand) -> None:
        id = f"{memory.plan.name}-{len(memory.orders)}"
        stream = run_stream(memory.plan.name)
        order = Order(run_command(SENDER, stream, command, id=id, now_ms=self.clock_ms()))
        memory.orders.append(order)
        await self._ask(order)
        if self._around.network.ledger.calm:
            return
        if self._random.random() < 0.2:
            await self._ask(order)
        if self._random.random() < 0.1:
            altered = Order(msgspec.structs.replace(order.command, cause="another"), altered=True)
            memory.orders.append(altered)
            await self._ask(altered)

    async def _ask(self, order: Order) -> None:
        order.answers.append(await self._outbox.ask(order.command))

    async def _look(self, memory: Memory) -> RunState | None:
        """The run as this client sees it now, folded from the log."""
        while True:
            try:
                await self._catch_up()
            except (DagbokError, OSError):
                await asyncio.sleep(0.5)
            else:
                return self.state.run_of(run_stream(memory.plan.name))

    async def _catch_up(self) -> None:
        while True:
            before = self.state.position
            position, commits = await read_effective(self._log, PARTITION, before, 500)
            if self.state.position != before:
                continue  # another script of this client was faster
            for commit in commits:
                apply(self.state, commit, decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size))
            self.state.position = position
            if position == before:
                return
