"""After a takeover the answers of the last commits are sent once more: only of commits that count."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.hosting.answering import answer_again
from dagbok.agents.queue.memory import MemoryQueue
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer, Reply, command_record, run_command
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS, Record
from dagbok.events.run.commands import CancelRun, PauseRun, RunCommand, StartRun
from dagbok.events.run.values import Pinned, SecurityContext, Spec, VerifierPin
from tests.support.logbuilder import SENDER, START_MS, LogBuilder

START = StartRun(
    tasks=(Spec(id="one", goal="one", worker="w", verifier="v"),),
    roots=("one",),
    pinned=Pinned({"v": VerifierPin("1", "d")}),
    context=SecurityContext(user="ann"),
)


def commands(*wanted: RunCommand) -> list[Record]:
    return [
        command_record(run_command(SENDER, "run:r", command, id=f"c{n}", now_ms=START_MS), reply_to="client/living")
        for n, command in enumerate(wanted)
    ]


async def answers(builder: LogBuilder, log: MemoryLog, *, lives: bool = True) -> Sequence[Answer]:
    heard: list[Reply] = []
    queue = MemoryQueue()
    queue.listen("client/living", heard.extend)
    await answer_again(log, 0, builder.state.position, queue, lambda process: lives)
    return [reply for reply in heard if isinstance(reply, Answer)]


async def test_the_last_commits_are_answered_and_what_does_not_count_is_not() -> None:
    log, builder, late = MemoryLog(), LogBuilder(), LogBuilder()
    records = commands(START, PauseRun("rest"), CancelRun("enough"))
    await log.append(COMMANDS, 0, records)
    builder.deliver(records[0].value)
    for other in (records[0], records[2]):
        late.deliver(other.value)
    builder.void(b"no commit at all")
    builder.void(late.records[1].value)  # another owner's word on a command that is not decided here
    builder.deliver(records[1].value)
    await builder.append_to(log)
    found = await answers(builder, log)
    assert [(answer.id, answer.accepted) for answer in found] == [("c0", True), ("c1", True)]
    bounds = await log.bounds(EVENTS, 0)
    assert bounds.end == 4, "both void records were there"


async def test_who_is_gone_is_not_answered() -> None:
    log, builder = MemoryLog(), LogBuilder()
    records = commands(START)
    await log.append(COMMANDS, 0, records)
    builder.deliver(records[0].value)
    await builder.append_to(log)
    assert await answers(builder, log, lives=False) == []


async def test_a_refusal_is_told_with_its_code() -> None:
    log, builder = MemoryLog(), LogBuilder()
    records = commands(PauseRun("what?"))
    await log.append(COMMANDS, 0, records)
    builder.deliver(records[0].value)
    await builder.append_to(log)
    assert [answer.code for answer in await answers(builder, log)] == [Code.NOT_FOUND]
