"""A history as the real decider makes it: a root, shards, and tasks below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dagbok.agents.scheduler.handle import handle
from dagbok.events.canonical import sha256_hex
from dagbok.events.envelope import Sender, command_record, run_command
from dagbok.events.log.port import StoredRecord
from dagbok.events.run.commands import RunCommand
from dagbok.events.run.events import Event
from dagbok.events.run.values import Limits
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState
from dagbok.testing.act import submit_outcome, submit_verdict
from dagbok.testing.make import candidate, decompose, start, task

NAME = "0123456789abcdef0123456789abcdef"
SENDER = Sender("local", "default", "user:local")
SHARD = 10_000

Note = Callable[[PartitionState, str | None, Sequence[Event], int], None]


class Partition:
    """A partition that decides without a log. `note` is told of each commit, as `SnapshotKeeper.note` is; `head` is the
    last one, and `command` the record that led to it."""

    def __init__(self, note: Note) -> None:
        self.state = PartitionState(0)
        self.head = self.command = b""
        self.commits_bytes = 0
        self._note = note
        self._sent = 0

    @property
    def run(self) -> RunState:
        return self.state.runs["run:" + NAME]

    def send(self, command: RunCommand) -> Sequence[Event]:
        id = sha256_hex(str(self._sent).encode())[:32]
        envelope = run_command(SENDER, "run:" + NAME, command, id=id, now_ms=self._sent)
        self.command = command_record(envelope).value
        decided = handle(self.state, StoredRecord(self._sent, self._sent, "", self.command), 1)
        self._sent += 1
        self.head = decided.value
        self.commits_bytes += len(decided.value)
        self._note(self.state, decided.stream, decided.events, len(decided.value))
        return decided.events

    def grow(self, tasks: int) -> None:
        """A root, shards, and N tasks below them."""
        self.send(start(task("root"), limits=Limits(max_tasks=2 * tasks + 100, max_edges=4 * tasks + 1_000)))
        shards = [f"shard-{number}" for number in range(-(-tasks // SHARD))]
        self.send(submit_outcome(self.run, "root", decompose(*map(task, shards))))
        for number, shard in enumerate(shards):
            children = range(number * SHARD, min(tasks, (number + 1) * SHARD))
            specs = [task(f"file-{child:06}", contract={"path": f"docs/file-{child}.md"}) for child in children]
            self.send(submit_outcome(self.run, shard, decompose(*specs)))

    def finish(self, *, tasks: int, commits_bytes: int) -> None:
        """Run and verify tasks until there were so many, or so many bytes of commits."""
        end_bytes = self.commits_bytes + commits_bytes
        while tasks > 0 and self.run.active and self.commits_bytes < end_bytes:
            for name in list(self.run.active):
                node = self.run.tasks[name]
                if node.attempt is not None and node.attempt.kind == "work":
                    self.send(submit_outcome(self.run, name, candidate({"of": name}, outputs={"lines": 1})))
                else:
                    self.send(submit_verdict(self.run, name, "pass"))
                    tasks -= 1
