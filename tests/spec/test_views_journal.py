"""The journal: every event once, as it was recorded, but for the bytes of artifacts."""

from __future__ import annotations

import msgspec

from dagbok.events.canonical import sha256_hex
from dagbok.events.envelope import Sender
from dagbok.events.run.commands import PauseRun
from dagbok.events.run.events import CandidateSubmitted
from dagbok.projections.queries import Queries
from dagbok.testing import act
from dagbok.testing.make import candidate, start, task
from tests.support.logbuilder import START_MS, LogBuilder
from tests.support.places import Place

ME = ("acme", "docs")
RIVAL = Sender("rival", "spies", "user:eve")


async def test_events_have_their_number_their_place_and_their_cause(place: Place) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")), id="first")
    builder.send("run-1", PauseRun("lunch"), id="second")
    tables = await place.projected(builder)
    rows = Queries(tables).journal(*ME, "run-1")
    assert [(row.seq, row.type, row.task) for row in rows] == [
        (1, "RunStarted", None),
        (2, "TasksAdded", None),
        (3, "AttemptOpened", "root"),
        (4, "RunPaused", None),
    ]
    assert [(row.log_partition, row.log_offset, row.log_event) for row in rows] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 2),
        (0, 1, 0),
    ]
    last = rows[-1]
    assert (last.actor, last.command_type, last.command_id) == ("user:ann", "PauseRun", "second")
    assert (last.stream, last.version, last.now_ms, last.data) == ("run:run-1", 1, START_MS, '{"reason":"lunch"}')


async def test_bytes_of_artifacts_are_left_out_and_their_hashes_stay(place: Place) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    secret = b"secret bytes" * 100
    builder.send("run-1", act.submit_outcome(builder.run("run-1"), "root", candidate(secret, outputs={"n": 1})))
    tables = await place.projected(builder)
    (row,) = Queries(tables).journal(*ME, "run-1", types=["CandidateSubmitted"])
    event = msgspec.json.decode(row.data, type=CandidateSubmitted)
    assert [(item.sha256, item.size_bytes, item.inline) for item in event.artifacts] == [
        (sha256_hex(secret), len(secret), None)
    ]
    assert bytes(event.outputs) == b'{"n":1}'
    assert len(row.data) < 1_000


async def test_a_refusal_on_a_run_has_a_number_in_its_stream(place: Place) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    builder.send("run-1", PauseRun())
    builder.send("run-1", PauseRun())
    tables = await place.projected(builder)
    (row,) = Queries(tables).journal(*ME, "run-1", types=["CommandRefused"])
    assert (row.seq, msgspec.json.decode(row.data)["code"]) == (5, "version_conflict")


async def test_a_refusal_of_no_stream_belongs_to_its_sender(place: Place) -> None:
    builder = LogBuilder()
    builder.send("run-1", start(task("root")))
    builder.send("run-1", PauseRun(), sender=RIVAL)
    builder.deliver(b"no command")
    tables = await place.projected(builder)
    queries = Queries(tables)
    assert [row.type for row in queries.journal(*ME, "run-1")] == ["RunStarted", "TasksAdded", "AttemptOpened"]
    assert queries.refusals(*ME) == []
    (foreign,) = queries.refusals("rival", "spies")
    assert (foreign.stream, foreign.seq, foreign.actor) == ("refused:0:1", 1, "user:eve")
    assert msgspec.json.decode(foreign.data)["code"] == "not_found"
    (unreadable,) = queries.refusals("", "")
    assert (unreadable.stream, msgspec.json.decode(unreadable.data)["code"]) == ("refused:0:2", "undecodable")
