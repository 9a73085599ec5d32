"""Dead letters: what is one, what is kept of it, and another try."""

from __future__ import annotations

import pytest

from dagbok.events.envelope import command_record, run_command
from dagbok.events.errors import Refused
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, Log, Record
from dagbok.events.run.commands import CancelRun, PauseRun
from dagbok.projections.dead_letters import bytes_of, get_dead_letter, list_dead_letters, redrive
from dagbok.projections.store import Tables
from dagbok.testing.make import start, task
from tests.support.logbuilder import SENDER, START_MS, LogBuilder
from tests.support.places import Place

LARGE = b'{"type": "' + b"x" * 40_000


class Sent:
    """A log in which garbage stands between commands, and tables of it."""

    def __init__(self, builder: LogBuilder, log: Log, tables: Tables) -> None:
        self.builder, self.log, self.tables = builder, log, tables


def _unknown() -> bytes:
    value = command_record(run_command(SENDER, "run:r", CancelRun(), id="future", now_ms=START_MS)).value
    return value.replace(b'"CancelRun"', b'"FoldSheet"')


@pytest.fixture
async def sent(place: Place) -> Sent:
    builder = LogBuilder()
    builder.send("r", start(task("root")))
    for value in (b"\xff no command", LARGE, _unknown()):
        builder.now_ms += 1_000
        builder.deliver(value)
    builder.send("nobody", PauseRun("of a run that is not there"))
    builder.send("r", CancelRun())
    log = await builder.log()
    await log.append(COMMANDS, 0, [Record("", record.value) for record in builder.commands])
    return Sent(builder, log, await place.projected(builder))


async def test_what_could_not_be_decoded_is_listed_the_newest_first_and_other_refusals_are_not(sent: Sent) -> None:
    found = list_dead_letters(sent.tables)
    told = [(row.command_offset, row.code) for row in found]
    assert told == [(3, "unsupported"), (2, "undecodable"), (1, "undecodable")]
    assert (found[0].tenant, found[0].command_type, found[0].command_id) == ("acme", "FoldSheet", "future")
    assert (found[2].tenant, found[2].command_type) == ("", "")
    assert [row.command_offset for row in list_dead_letters(sent.tables, limit=1)] == [3]


async def test_nothing_waits_behind_one(sent: Sent) -> None:
    assert sent.builder.run("r").status == "cancelled"


async def test_its_bytes_are_those_of_the_command_while_that_is_there(sent: Sent) -> None:
    assert await bytes_of(sent.log, get_dead_letter(sent.tables, 0, 1)) == (b"\xff no command", True)
    assert await bytes_of(sent.log, get_dead_letter(sent.tables, 0, 2)) == (LARGE, True)


async def test_later_they_are_those_that_the_refusal_kept(sent: Sent) -> None:
    await sent.log.delete_before(COMMANDS, 0, 6)
    assert await bytes_of(sent.log, get_dead_letter(sent.tables, 0, 1)) == (b"\xff no command", True)
    kept, whole = await bytes_of(sent.log, get_dead_letter(sent.tables, 0, 2))
    assert (kept, whole) == (LARGE[: 32 * 1024], False)


async def test_another_command_in_its_place_is_not_taken_for_it(place: Place) -> None:
    builder = LogBuilder()
    builder.deliver(b"garbage")
    log = await builder.log()
    await log.append(COMMANDS, 0, [Record("", b"another")])
    letter = get_dead_letter(await place.projected(builder), 0, 0)
    assert await bytes_of(log, letter) == (b"garbage", True)


async def test_redriven_it_is_appended_anew_with_the_bytes_it_had(sent: Sent) -> None:
    offset = await redrive(sent.log, get_dead_letter(sent.tables, 0, 3))
    (found,) = await sent.log.read(COMMANDS, 0, offset, 1)
    assert (offset, found.value, found.key) == (6, _unknown(), "run:r")


async def test_half_a_command_is_not_redriven(sent: Sent) -> None:
    await sent.log.delete_before(COMMANDS, 0, 6)
    with pytest.raises(Refused, match="only the first 32768 bytes"):
        await redrive(sent.log, get_dead_letter(sent.tables, 0, 2))
    assert (await sent.log.bounds(COMMANDS, 0)).end == 6


async def test_of_what_is_no_dead_letter_nothing_is_told(sent: Sent) -> None:
    for place in ((0, 0), (0, 4), (1, 1)):
        with pytest.raises(Refused, match="there is no dead letter"):
            get_dead_letter(sent.tables, *place)


async def test_a_log_without_any_has_none(place: Place) -> None:
    builder = LogBuilder()
    builder.send("r", start(task("root")))
    assert isinstance(await builder.log(), MemoryLog)
    assert list_dead_letters(await place.projected(builder)) == []
