"""The same commands to both logs, as processes of their own, and what of their words may differ."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from dagbok.cli.text import SHORT
from tests.kafka_roles.role_site import DAGBOK, TIMEOUT_S, Done, RoleSite

DIFFERENT = re.compile(
    r".*(_ms|_s|_offset|_partition|_seq|_id)|at|log|owner|pool|process|command|command_hash|path|digest"
)
"""Members of JSON that are times, places in a log of one partition or of several, or of this log alone."""
WORDS = (
    (re.compile(r"\b\d+(\.\d+)? m?s\b"), "TIME"),
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d TIME"), "TIME"),
    (re.compile(r"\bstory_program-[0-9a-f]{10}\b"), "default"),
    (re.compile(r"--(data|kafka)\b( [^\s;]+)?"), "--PLACE"),
    (re.compile(r" {2,}"), "  "),
)


UNDER_WAY = frozenset(("ready", "running", "verifying", "backoff"))
See = Callable[[Any], Any]


def as_it_is(value: Any) -> Any:
    """All of it."""
    return value


class Told(Protocol):
    """Gives a command and has what came of it."""

    async def command(self, *arguments: str) -> Done: ...


class FolderSite:
    """A data folder, and whoever serves it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.data = folder, folder / "data"
        self._processes: list[asyncio.subprocess.Process] = []

    async def command(self, *arguments: str) -> Done:
        """A command that ends."""
        process = await self._begun(*arguments, stdout=asyncio.subprocess.PIPE)
        async with asyncio.timeout(TIMEOUT_S):
            out, told = await process.communicate()
        return Done(process.returncode or 0, out.decode(), told.decode())

    async def start(self, *arguments: str) -> None:
        """One that stays."""
        self._processes.append(await self._begun(*arguments, stdout=asyncio.subprocess.DEVNULL))

    async def close(self) -> None:
        for process in self._processes:
            process.kill()
            await process.communicate()

    async def _begun(self, *arguments: str, stdout: int) -> asyncio.subprocess.Process:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DAGBOK_")}
        return await asyncio.create_subprocess_exec(
            *DAGBOK, *arguments, "--data", str(self.data), env=environment, cwd=self.folder, stdout=stdout,
            stderr=asyncio.subprocess.PIPE if stdout == asyncio.subprocess.PIPE else asyncio.subprocess.DEVNULL,
        )  # fmt: skip


class KafkaSite:
    """A log on Kafka with its tables, and the roles."""

    def __init__(self, site: RoleSite, database: str) -> None:
        self.site, self._database = site, {"DAGBOK_DATABASE": database}

    async def command(self, *arguments: str) -> Done:
        """A command that ends."""
        return await self.site.command(*arguments, **self._database)

    async def start(self, *arguments: str) -> None:
        """A role."""
        await self.site.start(*arguments, **self._database)


class Both:
    """Two sites in the same story. `names`: what stands for a word of a command on each, as RUN for the id of a run."""

    def __init__(self, *sites: Told) -> None:
        self._sites = sites
        self.names: Sequence[dict[str, str]] = [{} for _ in sites]
        self.told: Sequence[Any] = ()
        """What each has said last, word for word."""

    def call(self, name: str, words: Sequence[str]) -> None:
        """From now on `name` stands for these words, one for each site."""
        for names, word in zip(self.names, words, strict=True):
            names[name] = word

    async def say(self, *arguments: str) -> Sequence[Done]:
        """The same command to each."""
        return await asyncio.gather(*(self._say(number, arguments) for number in range(len(self._sites))))

    async def agree(self, *arguments: str, see: See = as_it_is) -> tuple[int, Any]:
        """Status and JSON that both give, as far as they have to be equal; of an error the error. `see`: what of it is
        looked at."""
        done = await self.say(*arguments, "--json")
        assert len({each.status for each in done}) == 1, (arguments, [(each.status, each.told) for each in done])
        self.told = [printed(each) for each in done]
        first, *others = [alike(see(each), names) for each, names in zip(self.told, self.names, strict=True)]
        for other in others:
            assert not (found := differences(first, other)), (arguments, found)
        return done[0].status, first

    async def words(self, *arguments: str) -> str:
        """What both print for people, on both of their outputs."""
        first, *others = [
            plain(f"{each.out}\n{each.told}", names)
            for each, names in zip(await self.say(*arguments), self.names, strict=True)
        ]
        for other in others:
            assert other == first, f"{arguments}: {other} is not {first}"
        return first

    async def until(self, holds: Callable[[Any], bool], *arguments: str) -> None:
        """Until each of them says what is waited for: tables on Kafka show what happened a moment ago."""

        async def seen(number: int) -> None:
            while not holds(printed(await self._say(number, (*arguments, "--json")))):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*(seen(number) for number in range(len(self._sites))))

    async def settled(self) -> None:
        """Until the tables have the commit of the last answer, and nothing is under way any more: what is seen then
        does not hang on who was faster."""
        places = [tuple(told["at"]) for told in self.told]

        async def holds(number: int) -> bool:
            there = [tuple(each["log"][:2]) for each in await self._lines(number, "events")]
            (shown,) = await self._lines(number, "show")
            return places[number] in there and not {task["status"] for task in shown["tasks"]} & UNDER_WAY

        async def seen(number: int) -> None:
            while not await holds(number):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*(seen(number) for number in range(len(self._sites))))

    async def _lines(self, number: int, command: str) -> Sequence[Any]:
        found = printed(await self._say(number, (command, "RUN", "--json")))
        return found if isinstance(found, list) else [found]

    async def _say(self, number: int, arguments: Sequence[str]) -> Done:
        names = self.names[number]
        return await self._sites[number].command(*(names.get(each, each) for each in arguments))


def alike(value: Any, names: Mapping[str, str]) -> Any:
    """A value without what may differ."""
    if isinstance(value, Mapping):
        kept = {name: item for name, item in value.items() if not DIFFERENT.fullmatch(name)}
        return {name: alike(item, names) for name, item in kept.items()}
    if isinstance(value, list | tuple):
        return [alike(item, names) for item in value]
    return plain(value, names) if isinstance(value, str) else value


def differences(one: Any, other: Any, at: str = "") -> Sequence[str]:
    """Where two values differ, and how."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for name in one for found in differences(one[name], other[name], f"{at}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for number, (here, there) in pairs for found in differences(here, there, f"{at}[{number}]")]
    return [] if one == other else [f"{at}: {one!r}, {other!r}"]


def plain(text: str, names: Mapping[str, str]) -> str:
    """Words without what may differ."""
    for name, word in names.items():
        text = text.replace(word, name)
        if name == "RUN":
            text = text.replace(word[:SHORT], name)
    for pattern, word in WORDS:
        text = pattern.sub(word, text)
    return text


def printed(done: Done) -> Any:
    """A value, lines of values, or an error."""
    text = done.out if done.out else (done.told.splitlines() or [""])[-1]
    lines = [json.loads(line) for line in text.splitlines() if line]
    return lines[0] if len(lines) == 1 else lines
