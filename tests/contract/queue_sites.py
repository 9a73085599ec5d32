"""The queues that the contract suite runs: where attempts are put, where they are taken, and what a test needs to look
at them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dagbok.agents.queue import AttemptKey, FolderQueue, Lane, MemoryQueue, Queue, SharedQueue, lane_of
from dagbok.agents.queue.folder import STALE_S
from dagbok.events.canonical import sha256_hex
from dagbok.events.envelope import Dispatch, Input
from dagbok.events.run.values import ArtifactRef, Place, SecurityContext
from dagbok.projections.artifacts.local import local_store
from dagbok.testing import task
from tests.kafka.queue_site import make_topics, new_prefix, queue_of

LANE = lane_of("work", "default")
TIMEOUT_S = 20.0


def dispatch(number: int, *, key: str = "work", kind: str = "work", pool: str = "default", run: str = "r") -> Dispatch:
    """A dispatch with this epoch."""
    return Dispatch(
        kind="work" if kind == "work" else "verify",
        tenant="acme",
        project="docs",
        run=run,
        task="t",
        epoch=number,
        phase="solve",
        pool=pool,
        key=key,
        input_hash="",
        opened_at=(0, 0),
        spec=task("t"),
        attempt=1,
        context=SecurityContext(user="ann"),
        graph_revision=0,
    )


def large(number: int) -> Dispatch:
    """A dispatch with so many inputs that it does not fit into a record: 5,000 of the 10,000 children that a task may
    have."""
    ref = ArtifactRef("result", sha256_hex(b"x"), 1, "application/json", Place(1, 10**6, 0, 0))
    inputs = tuple(Input(f"a child with a name of its own {index}", ref) for index in range(5_000))
    return msgspec.structs.replace(dispatch(number), inputs=inputs)


@dataclass
class Places:
    """A taker with so many free places by key. What it is handed takes none of them unless `collect` is told."""

    free: dict[str, int]
    waiting: list[Dispatch] = field(default_factory=list)

    def places(self) -> Mapping[str, int]:
        return self.free

    def give_back(self) -> Sequence[Dispatch]:
        back, self.waiting = self.waiting, []
        return back


@dataclass
class Site:
    """`sender` is where attempts are put, `taker` where they are taken: perhaps the same."""

    sender: Queue
    taker: Queue


def serve(queue: Queue, lane: Lane = LANE, **free: int) -> Places:
    """Have a queue that asks for it know a taker; without `free` one with places for everything."""
    places = Places(free or {"work": 1_000})
    if isinstance(queue, SharedQueue):
        queue.serve(lane, places)
    return places


async def collect(queue: Queue, count: int, lane: Lane = LANE, places: Places | None = None) -> list[int]:
    """Epochs of what comes, until so many have come; each takes one of the `places`."""
    taken: list[int] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(taken) < count:
            batch = await queue.take(lane)
            taken += [item.epoch for item in batch]
            for item in batch:
                if places is not None:
                    places.free[item.key] -= 1
    return taken


def free(queue: FolderQueue, key: str, lane: Lane = LANE) -> dict[str, int]:
    """By process, the free places that an owner knows of."""
    shares = vars(queue)["_sharing"].shares.get(lane)
    accounts = {} if shares is None else vars(shares)["_others"]
    return {name: account.free(key) for name, account in accounts.items() if key in account.places}


def unseen(queue: FolderQueue, lane: Lane = LANE) -> int:
    """How many dispatches of an owner are on their way."""
    shares = vars(queue)["_sharing"].shares.get(lane)
    return 0 if shares is None else len(shares.unseen())


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what nobody tells about: another process has done it."""
    async with asyncio.timeout(TIMEOUT_S):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


def open_queue(
    folder: Path,
    process: str,
    *,
    stale_s: float = STALE_S,
    is_gone: Callable[[str], bool] | None = None,
    lost: list[AttemptKey] | None = None,
) -> FolderQueue:
    """The queue of a process in a data folder; `lost` collects what it tells of processes that are gone."""

    def on_lost(lane: Lane, attempts: Sequence[AttemptKey]) -> None:
        if lost is not None:
            lost.extend(attempts)

    store = local_store(folder / "artifacts")
    return FolderQueue(folder / "queue.db", process, store, stale_s=stale_s, is_gone=is_gone, on_lost=on_lost)


@asynccontextmanager
async def memory_site(folder: Path) -> AsyncIterator[Site]:
    queue = MemoryQueue()
    yield Site(queue, queue)


@asynccontextmanager
async def alone_site(folder: Path) -> AsyncIterator[Site]:
    """One process of a folder."""
    queue = open_queue(folder, "owner")
    await queue.start()
    yield Site(queue, queue)
    await queue.close()


@asynccontextmanager
async def shared_site(folder: Path) -> AsyncIterator[Site]:
    """The owner of a folder, which takes nothing, and another process, which takes everything."""
    async with processes(folder, "worker") as (owner, worker):
        yield Site(owner, worker)


@asynccontextmanager
async def processes(folder: Path, *names: str, lane: Lane = LANE) -> AsyncIterator[list[FolderQueue]]:
    """The queue of an owner, and of processes that serve a lane and that it knows of."""
    async with AsyncExitStack() as stack:
        queues = [open_queue(folder, name) for name in ("owner", *names)]
        owner = queues[0]
        owner.put(lane, ())
        for queue in queues:
            await queue.start()
            stack.push_async_callback(queue.close)
        for queue in queues[1:]:
            serve(queue, lane)
            await queue.join()
        await until(lambda: owner.takers(lane) == frozenset(names))
        yield queues


@asynccontextmanager
async def kafka_site(folder: Path) -> AsyncIterator[Site]:
    """A process that sends and one that takes, with topics between them: of one partition each, which keeps order."""
    prefix = new_prefix()
    await make_topics(prefix, "default", "other")
    store = local_store(folder / "artifacts")
    async with queue_of(prefix, "owner", store=store) as owner, queue_of(prefix, "1", store=store) as worker:
        yield Site(owner, worker)


SITES = {"memory": memory_site, "alone": alone_site, "shared": shared_site, "kafka": kafka_site}
REPEATING = ("kafka",)
"""What was put there cannot be taken back, and comes as often as it was put."""
