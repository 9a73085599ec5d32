"""The rule of the log with several writers, two versions of the code, and a network that loses, delays and doubles.

The cases are those of `docs/design/models/`; here the real owner runs them.
"""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest

from dagbok.agents.scheduler import execute, owner
from dagbok.agents.scheduler.recover import NoSnapshots, Recovery
from dagbok.events.body import decode_body
from dagbok.events.commit import Commit
from dagbok.events.envelope import REPLY_TO
from dagbok.events.log.port import COMMANDS, EVENTS, Log, Record
from dagbok.events.rule import GENESIS
from dagbok.events.run.events import AttemptOpened
from dagbok.projections.partition import PartitionState
from dagbok.projections.reading import Tally, read_effective
from tests.simulation.owners import Outlet, RunningOwner, decide_by_version
from tests.support.histories import random_history
from tests.support.scale import scale
from tests.support.snapshotting import image
from tests.support.unreliable import Connection, Network, unreliable

SEEDS = range(scale(40, 1_500))
TIMEOUT_S = 60.0


@pytest.fixture(autouse=True)
def _no_pauses_and_two_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "DOUBT_PAUSE_S", 0.0)
    monkeypatch.setattr(execute, "decide", decide_by_version)


@pytest.mark.parametrize("seed", SEEDS)
async def test_all_agree_whatever_the_network_does(seed: int) -> None:
    random = Random(seed)
    network = unreliable(seed, random.choice((0.1, 0.3, 0.6)))
    outlet = Outlet()
    async with asyncio.timeout(TIMEOUT_S):
        await _live_through(network, outlet, random)
        commits = await _effective(network.log)
        commands = await network.log.read(COMMANDS, 0, 0, 10_000)
    assert [commit.seal.command_offset for commit in commits.values()] == [command.offset for command in commands]
    _check_outputs(outlet, commits)


async def test_the_simulation_has_faults_void_commits_and_outputs() -> None:
    tally, faults, outlet = Tally(), 0, Outlet()
    for seed in range(5):
        network = unreliable(seed, 0.3)
        async with asyncio.timeout(TIMEOUT_S):
            await _live_through(network, outlet, Random(seed))
        await read_effective(network.log, 0, GENESIS, 10_000, tally)
        faults += network.faults
    assert min(tally.void, tally.effective, faults, len(outlet.dispatches), len(outlet.answers)) > 30


async def _live_through(network: Network, outlet: Outlet, random: Random) -> None:
    """Commands come, owners come and go; in the end the network works, and all owners have decided everything."""
    refuses = random.random() < 0.3
    commands = list(random_history(random.randrange(10**6), 80).commands)

    def begin() -> RunningOwner:
        return RunningOwner(Connection(network, refuses=refuses), outlet, random.choice((1, 2)))

    owners = [begin() for _ in range(random.choice((2, 3)))]
    while commands:
        for command in commands[: (size := random.randrange(1, 8))]:
            network.now_ms = command.append_ms
            await network.log.append(COMMANDS, 0, [Record(command.key, command.value, {REPLY_TO: "somebody"})])
        del commands[:size]
        for _ in range(random.randrange(30)):
            await asyncio.sleep(0)
        if random.random() < 0.15:
            await owners.pop(random.randrange(len(owners))).stop()
            owners.append(begin())
    await _settle(network, owners)
    for running in owners:
        await running.stop()


async def _settle(network: Network, owners: list[RunningOwner]) -> None:
    network.chance = 0.0
    last = (await network.log.bounds(COMMANDS, 0)).end - 1
    for running in owners:
        await running.decided(last)
    await network.land_late(all=True)
    folded = _image(await Recovery(network.log, 0, NoSnapshots(0)).fold())
    for running in owners:
        assert _image(running.owner.state) == folded


def _image(state: PartitionState) -> bytes:
    """A state, but for how many void records its reader has skipped at the end."""
    return image(msgspec.structs.replace(state, position=msgspec.structs.replace(state.position, next_offset=0)))


async def _effective(log: Log) -> dict[int, Commit]:
    end = (await log.bounds(EVENTS, 0)).end
    _, commits = await read_effective(log, 0, GENESIS, end)
    return {commit.offset: commit for commit in commits}


def _check_outputs(outlet: Outlet, commits: dict[int, Commit]) -> None:
    """Nothing that left any owner comes from a commit that does not count."""
    assert outlet.confirmed <= {commit.hash for commit in commits.values()}
    for dispatch in outlet.dispatches:
        commit = commits[dispatch.opened_at[1]]
        events = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
        opened = [event for event in events if isinstance(event, AttemptOpened)]
        assert (dispatch.task, dispatch.epoch) in [(event.task, event.epoch) for event in opened]
        assert commit.seal.stream == f"run:{dispatch.run}"
    for answer in outlet.answers:
        assert commits[answer.at[1]].seal.command_id == answer.id
