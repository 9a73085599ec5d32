"""What `docs/other-languages.md` says: its program, which has nothing of dagbok, starts and steers runs."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from dagbok import Candidate, Dagbok, Outcome, TaskContext, verifier, worker
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import COMMANDS
from tests.contract.reading import read_all
from tests.support import schemas
from tests.support.audit import effective_commits
from tests.support.hosts import TIMEOUT_S

PARTITIONS = 4
PAGE = (Path(__file__).parents[2] / "docs" / "other-languages.md").read_text()
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
COMMAND, ANSWER = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL))

Send = Callable[[Any], Awaitable[Any]]


@worker("summarize", pure=True)
async def summarize(task: TaskContext) -> Outcome:
    """What it was given."""
    return Outcome.candidate(task.inputs)


@verifier("check", version="1")
async def check(candidate: Candidate, task: TaskContext) -> bool:
    """Whatever it is."""
    return True


@pytest.fixture
async def dagbok(settings: KafkaSettings, tmp_path: Path) -> AsyncIterator[Dagbok]:
    await topics.create(settings, topics.declared(settings.prefix, PARTITIONS))
    async with (
        asyncio.timeout(TIMEOUT_S),
        Dagbok.connect(
            summarize, check, kafka=settings, artifacts=str(tmp_path), schedule=True, session_s=1.5
        ) as connected,
    ):
        yield connected


@pytest.fixture
def send(settings: KafkaSettings, tmp_path: Path) -> Send:
    """Runs the program of the page in a process of its own; what it prints."""
    program = tmp_path / "send.py"
    program.write_text(PROGRAM)

    async def run(command: Any) -> Any:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(program), settings.bootstrap_servers, settings.prefix),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate(json.dumps(command).encode())
        assert process.returncode == 0
        return json.loads(out)

    return run


def now(**changes: Any) -> Any:
    """The command of the page, sent now."""
    return COMMAND | {"first_sent_ms": int(time.time() * 1000)} | changes


def test_the_program_has_nothing_of_dagbok() -> None:
    found = ast.walk(ast.parse(PROGRAM))
    modules = {alias.name for node in found if isinstance(node, ast.Import) for alias in node.names}
    froms = {node.module for node in ast.walk(ast.parse(PROGRAM)) if isinstance(node, ast.ImportFrom)}
    assert modules | froms == {"aiokafka", "asyncio", "hashlib", "json", "secrets", "sys"}


def test_the_command_of_the_page_fits_the_schema() -> None:
    schemas.commands().validate(COMMAND)


async def test_a_foreign_program_starts_a_run_which_ends_and_steers_it(
    dagbok: Dagbok, send: Send, settings: KafkaSettings
) -> None:
    command = now()
    answer = await send(command)
    assert answer == ANSWER | {"at": answer["at"]}
    run = command["stream"].removeprefix("run:")
    result = await dagbok.wait(run)
    assert (result.succeeded, result.roots["summary"].json()) == (True, {"invoice": 2041})
    async with aclosing(dagbok.events(run)) as events:
        async for event in events:
            schemas.events().validate({"type": event.type, "version": event.version, "data": event.data})
            first = event.type == "RunStarted"
            assert not first or (event.actor, event.command) == ("key:billing", ("StartRun", command["id"]))

    assert await send(command) == answer, "the same bytes again"
    late = await send(now(type="CancelRun", id="another", data={"reason": "too late"}))
    assert (late["id"], late["accepted"], late["code"], late["retry"]) == ("another", False, "run_closed", False)

    log = await KafkaLog.open(settings)
    try:
        commits = await effective_commits(log, answer["at"][0])
        (started,) = [events for seal, events in commits if seal.offset == answer["at"][1]]
        assert [type(event).__name__ for event in started] == answer["events"], "they stand where the answer says"
        sent = await read_all(log, COMMANDS, answer["at"][0])
        assert all(schemas.is_readable(record.value) for record in sent)
    finally:
        await log.close()


async def test_a_foreign_program_is_told_what_is_wrong_with_its_command(dagbok: Dagbok, send: Send) -> None:
    for wrong, code in (
        (now(id="a", type="StartRuns"), "unsupported"),
        (now(id="b", data=COMMAND["data"] | {"tasks": 1}), "undecodable"),
        (now(id="c", data=COMMAND["data"] | {"pinned": {"verifiers": {}}}), "verifier_unavailable"),
        (now(id="d", first_sent_ms=COMMAND["first_sent_ms"] * 2), "clock_ahead"),
    ):
        answer = await send(wrong)
        assert (answer["id"], answer["accepted"], answer["code"]) == (wrong["id"], False, code)
        assert answer["reason"]
        assert answer["advice"]
    nothing = await send({"stream": "run:x", "id": "e"})
    assert (nothing["id"], nothing["code"]) == ("", "undecodable")
