"""`dagbok dead-letters`: what nobody could make sense of, its bytes, and another try."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dagbok.events.log.port import COMMANDS, Record
from dagbok.events.log.sqlite import SqliteLog
from tests.cli.conftest import Call
from tests.cli.programs import Program


def append(folder: Path, value: bytes) -> int:
    """Put a command into the log, as any program with a mistake may."""

    async def put() -> int:
        log = SqliteLog.open(folder / "log.db")
        offset = await log.append(COMMANDS, 0, [Record("", value)])
        await log.close()
        return offset

    return asyncio.run(put())


def test_garbage_is_listed_shown_and_tried_again_and_the_rest_goes_on(call: Call, copied: Program) -> None:
    offset = append(copied.data, b"\x1b[31m no command")
    run = call(*copied.look("ls", "--json")).json[0]["run"]
    assert call(*copied.look("cancel", run)).status == 0, "what comes behind it is decided, and so is it"

    head, line = call(*copied.look("dead-letters", "ls")).out.splitlines()
    assert head.split() == ["COMMAND", "WHEN", "CODE", "TYPE", "TENANT", "WHY"]
    assert line.split()[0] == f"0:{offset}"
    assert "undecodable" in line

    said = call(*copied.look("dead-letters", "show", f"0:{offset}"))
    assert "16 bytes:" in said.out
    assert "\x1b" not in said.out
    told = call(*copied.look("dead-letters", "show", f"0:{offset}", "--json")).json
    assert (told["code"], told["whole"], told["raw"]) == ("undecodable", True, "G1szMW0gbm8gY29tbWFuZA==")

    again = call(*copied.look("dead-letters", "redrive", f"0:{offset}"))
    assert again.status == 0
    assert "decided by the next process that owns the folder" in again.out
    assert call(*copied.look("resume", run)).status == 3
    places = [row["command"] for row in call(*copied.look("dead-letters", "ls", "--json")).json]
    assert places[1:] == [f"0:{offset}"]
    assert again.out.split()[2].rstrip(";") == places[0]


def test_without_any_that_is_said(call: Call, copied: Program) -> None:
    said = call(*copied.look("dead-letters", "ls"))
    assert (said.status, said.out) == (0, "")
    assert said.err == "no dead letters: every command could be decoded and handled\n"
    assert call(*copied.look("dead-letters", "ls", "--json")).json == []


def test_what_is_no_dead_letter_is_not_found_and_what_is_no_place_is_wrong_usage(
    call: Call, copied: Program
) -> None:
    for verb in ("show", "redrive"):
        assert call(*copied.look("dead-letters", verb, "0:0")).status == 3
        for name in ("0", "0:", ":0", "0:-1", "a:b", "0:1:2", "١:٢", "0:" + "9" * 60):
            assert call(*copied.look("dead-letters", verb, name)).status == 2, name
