"""One user's story, told to a data folder and to a log on Kafka: every command does the same, and says the same."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dagbok.events.log.port import COMMANDS, Record
from dagbok.events.log.sqlite import SqliteLog
from tests.kafka_roles import story_program
from tests.kafka_roles.role_site import RoleSite
from tests.kafka_roles.story_sites import Both, FolderSite, KafkaSite, See, as_it_is, printed
from tests.servers.postgres_system import SystemPostgres
from tests.support.places import drop_schemas

PROGRAM = Path(story_program.__file__)
HOPEFUL = '{"id": "hopeful", "goal": "another way", "worker": "reports", "verifier": "any"}'
GARBAGE = b"\xff\xfe no command"


class Step(NamedTuple):
    """A command, its exit status, and what of its JSON is compared."""

    words: tuple[str, ...]
    status: int = 0
    see: See = as_it_is


def by_task(told: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[str]]:
    """What happened to each task, and to the run itself (""), each in its order: between them any order will do, and
    who was fast enough needs not say that it begins."""
    found = defaultdict(list)
    for event in told:
        if event["type"] not in ("AttemptStarted", "LeasesRenewed"):
            found[event["task"] or ""].append(event["type"])
    return found


def spans(told: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Names and errors of the spans of a trace."""
    (scope,) = told["resourceSpans"][0]["scopeSpans"]
    return sorted((span["name"], span.get("status", {}).get("message", "")) for span in scope["spans"])


def in_order(told: Any) -> Any:
    """A run as it is shown, in any order of its attempts."""
    return told | {"attempts": sorted(told["attempts"], key=lambda each: (each["task"], each["epoch"]))}


LOOKS = (
    Step(("ls",)),
    Step(("ls", "--status", "failed")),
    Step(("show", "RUN"), see=in_order),
    Step(("show", "last"), see=in_order),
    Step(("show", "RUN", "--task", "full")),
    Step(("events", "RUN"), see=by_task),
    Step(("trace", "RUN"), see=spans),
    Step(("limits", "RUN")),
    Step(("artifact", "ls", "RUN")),
    Step(("session", "show", "RUN", "talk")),
    Step(("session", "show", "RUN", "ta", "--turn", "2")),
    Step(("session", "fork", "RUN", "talk", "--turn", "2")),
    Step(("dead-letters", "ls")),
    Step(("show", "nothing"), 3),
    Step(("show", "RUN", "--tenant", "rival"), 3),
    Step(("show", "RUN", "--task", "nothing"), 3),
    Step(("artifact", "get", "RUN", "end"), 3),
    Step(("session", "show", "RUN", "report"), 3),
    Step(("session", "show", "RUN", "talk", "--turn", "9"), 3),
    Step(("dead-letters", "show", "0:100000"), 3),
    Step(("retry", "RUN", "report"), 3),
    Step(("resolve", "RUN", "full"), 3),
    Step(("resolve", "RUN", ""), 2),
    Step(("resume", "RUN"), 3),
    Step(("limits", "RUN", "max_tasks=1"), 3),
    Step(("limits", "RUN", "tasks=1"), 2),
    Step(("supersede", "RUN", "report", "--spec", HOPEFUL), 3),
    Step(("supersede", "RUN", "hopeless", "--spec", HOPEFUL, "--revision", "99"), 3),
    Step(("amend", "RUN"), 2),
    Step(("amend", "RUN", "--import", str(PROGRAM), "--verifier", "nothing"), 3),
)
"""At a run that has come to a stop: nothing of it changes anything."""

PRINTED = (
    ("ls",),
    ("ls", "--status", "failed"),
    ("show", "RUN"),
    ("show", "RUN", "--task", "full"),
    ("show", "RUN", "--task", "colour"),
    ("limits", "RUN"),
    ("artifact", "ls", "RUN"),
    ("artifact", "get", "RUN", "report", "short"),
    ("session", "show", "RUN", "talk"),
    ("dead-letters", "ls"),
    ("resume", "RUN"),
)
"""What people read."""

STEERS = (
    Step(("limits", "RUN", "max_tasks=200000")),
    Step(("pause", "RUN", "--reason", "lunch")),
    Step(("pause", "RUN"), 3),
    Step(("resume", "RUN", "--reason", "back")),
    Step(("supersede", "RUN", "hopeless", "--spec", HOPEFUL)),
    Step(("amend", "RUN", "--max-depth", "7", "--reason", "deeper")),
    Step(("amend", "RUN", "--import", str(PROGRAM), "--verifier", "spare"), 3),
    Step(("retry", "RUN", "full", "--note", "there is room again")),
    Step(("resolve", "RUN", "colour", "--note", "blue")),
)
"""In this order they let the run go on to its end."""

AFTERWARDS = (
    Step(("ls",)),
    Step(("show", "RUN"), see=in_order),
    Step(("show", "RUN", "--task", "hopeful")),
    Step(("limits", "RUN")),
    Step(("artifact", "ls", "RUN")),
    Step(("trace", "RUN"), see=spans),
    Step(("retry", "RUN", "report"), 3),
    Step(("pause", "RUN"), 3),
    Step(("cancel", "RUN"), 3),
    Step(("limits", "RUN", "max_tasks=300000"), 3),
)


LETTERS = (
    Step(("dead-letters", "ls")),
    Step(("dead-letters", "show", "LETTER")),
    Step(("dead-letters", "redrive", "LETTER")),
    Step(("dead-letters", "redrive", "0:100000"), 3),
)
CANCELS = (
    Step(("cancel", "RUN", "--task", "report"), 3),
    Step(("cancel", "RUN", "--task", "end", "--reason", "no use")),
    Step(("cancel", "RUN", "--reason", "enough")),
    Step(("resume", "RUN"), 3),
)


@pytest.fixture
def folder_log(tmp_path: Path) -> Path:
    """The log of the data folder."""
    return tmp_path / "folder" / "data" / "log.db"


@pytest.fixture
async def both(tmp_path: Path, site: RoleSite, server: SystemPostgres) -> AsyncIterator[Both]:
    """A served folder, and a served log on Kafka, each with one run of the program that has come to a stop."""
    drop_schemas(server.url, "dagbok")
    await site.create_topics()
    folder, kafka = FolderSite(tmp_path / "folder"), KafkaSite(site, server.url)
    for role in (("scheduler",), ("worker", "--import", str(PROGRAM)), ("projector",)):
        await kafka.start(*role)
    both = Both(folder, kafka)
    both.call("WHERE", [str(folder.data), f"the log at {site.kafka.bootstrap_servers}"])
    both.call("RUN", [done.json()["run"] for done in await both.say("submit", str(PROGRAM), "--json")])
    await folder.start("up", "--import", str(PROGRAM))
    await both.until(has_stopped, "show", "RUN")
    yield both
    await folder.close()


def has_stopped(shown: Any) -> bool:
    """Two tasks have failed, one waits for a person, two are done; one waits for the others."""
    states = sorted(task["status"] for task in shown.get("tasks", ()))
    return states == ["blocked", "failed", "failed", "verified", "verified", "waiting"]


async def test_a_run_that_has_stopped_looks_the_same(both: Both, site: RoleSite, folder_log: Path) -> None:
    for step in LOOKS:
        await _take(both, step)
    for words in PRINTED:
        await both.words(*words)
    await _a_dead_letter_is_the_same_letter(both, site, folder_log)


async def _a_dead_letter_is_the_same_letter(both: Both, site: RoleSite, folder_log: Path) -> None:
    log = SqliteLog.open(folder_log)
    offsets = [await each.append(COMMANDS, 0, [Record("", GARBAGE)]) for each in (log, (await site.client()).log)]
    await log.close()
    both.call("LETTER", [f"0:{offset}" for offset in offsets])
    await both.until(lambda letters: len(letters) == 1, "dead-letters", "ls")
    for step in LETTERS:
        await _take(both, step)
    await both.until(lambda letters: len(letters) == 2, "dead-letters", "ls")
    await both.agree("dead-letters", "ls")


async def test_it_is_steered_to_its_end_in_the_same_way(both: Both) -> None:
    *steers, last = STEERS
    for step in steers:
        await _take(both, step)
        if step.status == 0:
            await both.settled()
    following = asyncio.create_task(both.say("events", "RUN", "--follow", "--json"))
    await _take(both, last)
    await both.until(lambda shown: bool(shown["run"]["status"] == "succeeded"), "show", "RUN")
    followed, other = [by_task(printed(done)) for done in await following]
    assert followed == other
    assert followed[""][-1] == "RunSucceeded"
    for step in AFTERWARDS:
        await _take(both, step)
    for task in ("end", "hopeless", "full"):
        await both.words("artifact", "get", "RUN", task)
    long = await both.say("artifact", "get", "RUN", "report", "long")
    assert {done.json() for done in long} == {story_program.LONG}
    await _another_run_is_cancelled(both)


async def _another_run_is_cancelled(both: Both) -> None:
    again = [done.json() for done in await both.say("submit", str(PROGRAM), "--json")]
    assert [each["resumed"] for each in again] == [False, False], "what is over begins anew"
    both.call("RUN", [each["run"] for each in again])
    await both.until(has_stopped, "show", "RUN")
    for step in CANCELS:
        await _take(both, step)
        if step.status == 0:
            await both.settled()
    await both.agree("events", "RUN", "--follow", see=by_task)
    await both.agree("show", "RUN", see=in_order)


async def _take(both: Both, step: Step) -> None:
    status, told = await both.agree(*step.words, see=step.see)
    assert status == step.status, (step.words, told)
