"""Any order of commands, right ones, nearly right ones, repeated ones and nonsense: what holds after each of them.

Commands go through the scheduler's own `handle`, so a command that breaks a decider fails the test. Every answer is
compared with that of a second, naive description of the graph (`run_model.py`).
"""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import Phase, seed, settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from dagbok.events.run import commands as c
from dagbok.events.run.events import AttemptUnserved, CommandRefused, CommandRepeated, LeasesRenewed
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState
from tests.property.run_machine import randoms
from tests.property.run_operators import Operators
from tests.property.run_seen import Seen
from tests.support.scale import scale
from tests.support.strategies import any_command


class RunMachine(Operators):
    """All of them, and commands that should change nothing."""

    @precondition(lambda self: self.log.commands)
    @rule(random=randoms)
    def a_command_comes_again(self, random: Random) -> None:
        """Whatever it was and whatever happened since: it has no second effect. (A refused one may have its first.)

        Only an old renewal that comes behind a younger one holds a lease a little longer, and an old rejection delays a
        dispatch: of those two, only the last of each process is remembered.
        """
        place = random.choice(range(len(self.sent)))
        name, command = self.sent[place]
        value = self.log.commands[place].value
        had_its_effect, before = value in self.accepted, self._image()
        statuses = self.seen.statuses(self.log.run(name))
        events = self.log.deliver(value)
        self.sent.append((name, command))
        self.models[name].answered(command, events, self.log.now_ms, right=False)
        self.models[name].agrees(self.log.run(name))
        if had_its_effect:
            assert self._image() == before
            assert isinstance(events[0], CommandRepeated | CommandRefused | LeasesRenewed | AttemptUnserved)
        if name == self.name:
            self._took(command, statuses, events)

    def _image(self) -> bytes:
        """All runs, without what the repeated command may change: see above. Every answer moves the stream's head."""
        runs = msgspec.json.decode(msgspec.json.encode(list(self.log.state.runs.values())), type=list[RunState])
        for run in runs:
            run.stream_seq, run.stream_head = 0, ""
            for node in run.tasks.values():
                if node.attempt is not None:
                    node.attempt.lease_until_ms = node.attempt.unserved = 0
                    node.attempt.renewed_by = ("", 0)
                    node.attempt.rejected_by.clear()
        return msgspec.json.encode(runs)

    @rule(command=any_command)
    def nonsense_comes(self, command: c.RunCommand) -> None:
        if not isinstance(command, c.CancelRun):
            self._send(command, right=False)

    @rule()
    def a_snapshot_is_taken_and_read(self) -> None:
        """From here on everything is decided on the state as it comes back from a snapshot."""
        encoded = msgspec.json.encode(self.log.state)
        self.log.state = msgspec.json.decode(encoded, type=PartitionState)
        assert msgspec.json.encode(self.log.state) == encoded


TestRun = RunMachine.TestCase
TestRun.settings = settings(max_examples=scale(40, 2_000), stateful_step_count=60, deadline=None)


class Counted(RunMachine):
    """The same machine, with counts of its own."""

    seen = Seen()


def test_the_machine_comes_past_everything() -> None:
    """Every command, event, refusal and change of status that a run can show does occur, so that what holds after each
    step says something of them all. A generator that loses one fails here. By seeds, since without them hypothesis runs
    the same examples each time where `CI` is set."""
    some = settings(max_examples=50, stateful_step_count=60, deadline=None, database=None, phases=(Phase.generate,))
    for number in range(scale(24, 200)):
        run_state_machine_as_test(seed(number)(Counted), settings=some)
        missing = Counted.seen.missing(rare=scale(0, 1) == 1)
        if not missing:
            return
    raise AssertionError(f"never seen: {', '.join(missing)}")
