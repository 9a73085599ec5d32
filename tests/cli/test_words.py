"""Settings, logs, exit statuses and text: what the words of the command line are."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
import structlog
from cyclopts import App

from dagbok import logs
from dagbok.cli.app import EPILOGUE, build
from dagbok.cli.exits import Exit, exit_of_code, exit_of_status
from dagbok.cli.outputs import file_name
from dagbok.cli.progress import Meter, Plain, shown
from dagbok.cli.quiet import TOLD_BY_COMMANDS, quiet_logs
from dagbok.cli.text import clean, columns, counts, duration, short
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.results import Unserved
from dagbok.settings import Settings
from tests.cli.conftest import Call

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def test_settings_come_from_variables() -> None:
    found = Settings.from_environment(
        {"DAGBOK_DATA": "/d", "DAGBOK_TENANT": "acme", "DAGBOK_DEBUG": "Yes", "DAGBOK_LOG_LEVEL": "INFO", "OTHER": "x"}
        | {"DAGBOK_TENANT_LIMIT": "50", "DAGBOK_ARTIFACTS": "s3://bucket/team"}
    )
    assert found == Settings(
        data=Path("/d"),
        tenant="acme",
        debug=True,
        log_level="info",
        tenant_limit=50,
        artifacts="s3://bucket/team",
    )


def test_an_empty_variable_counts_as_absent() -> None:
    assert Settings.from_environment({"DAGBOK_TENANT": " ", "DAGBOK_LOG_FORMAT": ""}) == Settings()


@pytest.mark.parametrize("name", ["LOG_LEVEL", "LOG_FORMAT", "DEBUG", "TENANT_LIMIT"])
def test_a_wrong_variable_is_named(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"DAGBOK_{name} is 'loud'") as caught:
        Settings.from_environment({f"DAGBOK_{name}": "loud"})
    assert caught.value.code is Code.USAGE


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "²"])
def test_a_limit_is_a_number_above_zero(limit: str) -> None:
    with pytest.raises(InvalidInput, match="DAGBOK_TENANT_LIMIT is"):
        Settings.from_environment({"DAGBOK_TENANT_LIMIT": limit})


@pytest.mark.parametrize("option", ["--tenant", "--project"])
def test_a_tenant_or_project_that_is_no_id_is_a_usage_error(call: Call, tmp_path: Path, option: str) -> None:
    said = call("ls", "--data", str(tmp_path), option, "a/b")
    assert said.status == 2
    assert f"check {option} and DAGBOK_" in said.err


def test_every_code_has_a_status_of_the_table() -> None:
    assert {exit_of_code(code) for code in Code} == {Exit.USAGE, Exit.REFUSED, Exit.BUSY, Exit.STORAGE, Exit.INTERNAL}


@pytest.mark.parametrize(("status", "found"), [("succeeded", 0), ("failed", 1), ("cancelled", 1), ("blocked", 4)])
def test_every_end_of_a_run_has_a_status(status: str, found: int) -> None:
    assert exit_of_status(status) == found


def test_the_page_lists_every_command_setting_and_status() -> None:
    page = PAGE.read_text()
    for field in Settings.__dataclass_fields__:
        if field != "kafka":
            assert f"`DAGBOK_{field.upper()}`" in page
    for field in KafkaSettings.__struct_fields__:
        assert f"`DAGBOK_KAFKA_{field.upper()}`" in page
    for status in Exit:
        assert re.search(rf"^\| {status.value} \|", page, re.MULTILINE), status
    for command in build():
        assert command.startswith("-") or f"dagbok {command}" in page, command


def test_help_and_page_say_the_same_of_a_status() -> None:
    (said,) = re.findall(r"  5  (.+)", EPILOGUE)
    assert f"| 5 | {said} |" in PAGE.read_text().splitlines()


@pytest.mark.parametrize("arguments", [["nope"], ["ls", "--nope"], ["show", "a", "b"], ["run"], ["resolve", "last"]])
def test_wrong_usage_is_one_line(call: Call, arguments: list[str]) -> None:
    said = call(*arguments)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("DAGBOK-USAGE: ")
    assert "--help" in said.err
    assert len(said.err.splitlines()) == 1
    assert call(*arguments, "--json").error["code"] == "usage"


def test_help_and_version(call: Call) -> None:
    assert call("--version").out == "dagbok 0.1.0\n"
    assert call().out == call("--help").out
    assert "Exit status:" in call("--help").out
    for command in ("up", "ls", "show", "events", "artifact get", "pause", "resolve"):
        assert f"dagbok {command}" in call(*command.split(), "--help").out


def _functions(app: App, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Callable[..., object]]]:
    """Every command that does something, by its words."""
    for name in app:
        if not name.startswith("-"):
            inner = app[name]
            if inner.default_command is not None:
                yield (*words, name), inner.default_command
            yield from _functions(inner, (*words, name))


@pytest.mark.parametrize(("words", "function"), [*_functions(build())])
def test_help_shows_all_that_is_written_of_a_command_and_of_every_parameter(
    call: Call, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], function: Callable[..., object]
) -> None:
    """Parsers of docstrings take sections out of them that they know, examples say."""
    monkeypatch.setenv("COLUMNS", "200")
    help = call(*words, "--help").out
    text, _, _ = inspect.cleandoc(str(function.__doc__)).partition("Parameters\n---")
    assert {line.strip() for line in text.splitlines()} <= {line.strip() for line in help.splitlines()}
    for line in help.splitlines():
        assert not re.fullmatch(r"│ \W*(--\S+ )*[A-Z|.]+ *│", line), f"not described: {line}"
        assert not re.match(r"│ {8,}\S", line), f"a line that is broken off where there is room: {line}"
    assert len(help.splitlines()) < 70, "who asks for one command is told of that one"


def test_a_bug_is_one_line_too(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagbok.cli.show.list_runs", lambda *_: 1 / 0)
    said = call("ls")
    assert said.status == Exit.INTERNAL
    assert said.err == (
        "DAGBOK-INTERNAL-ERROR: ZeroDivisionError: division by zero — run it again with --debug and report it\n"
    )
    assert "Traceback" in call("ls", "--debug").err


def test_what_libraries_log_is_for_who_asks_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    quiet_logs(Settings())
    library = logging.getLogger("aiokafka.consumer.group_coordinator")
    library.error("Group Coordinator Request failed: %s", "[Error 15]")
    assert capsys.readouterr().err == ""
    quiet_logs(Settings(log_level="debug"))
    library.error("Group Coordinator Request failed: %s", "[Error 15]")
    assert "Group Coordinator Request failed: [Error 15]" in capsys.readouterr().err


def test_services_log_json_with_their_ids() -> None:
    stream = io.StringIO()
    logs.configure("info", "auto", stream=stream, pid=7)
    log = structlog.get_logger("dagbok.somewhere")
    log.debug("not.told")
    log.info("told", run="abc")
    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("broke")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["event"], first["level"], first["run"], first["pid"]) == ("told", "info", "abc", 7)
    assert "ValueError: bad" in second["exception"]


def test_commands_log_only_what_they_do_not_tell(capsys: pytest.CaptureFixture[str]) -> None:
    quiet_logs(Settings())
    for name in TOLD_BY_COMMANDS:
        assert import_module(name).__name__ == name
        structlog.get_logger(name).error("told.otherwise")
    log = structlog.get_logger("dagbok.agents.scheduler.owner")
    log.info("not.told")
    assert capsys.readouterr().err == ""
    log.warning("owner.in_doubt", partition=3, error="the disk is\nfull", exc_info=ValueError("bad"))
    told = capsys.readouterr().err
    assert told == "warning: owner in doubt: the disk is full (all of it: --log-level warning)\n"
    quiet_logs(Settings(log_level="warning"))
    log.warning("owner.in_doubt", partition=3, error="the disk is full")
    assert re.search(r"owner.in_doubt .*partition=3", re.sub(r"\x1b\[\d*m", "", capsys.readouterr().err))
    quiet_logs(Settings(log_level="info"))
    structlog.get_logger(TOLD_BY_COMMANDS[0]).info("told.now")
    assert "told.now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ms", "said"),
    [(3.4, "3 ms"), (1_234, "1.2 s"), (99_900, "99.9 s"), (125_000, "2 m 05 s"), (3_780_000, "1 h 03 m"), (-1, "0 ms")],
)
def test_durations(ms: float, said: str) -> None:
    assert duration(ms) == said


def test_text_from_elsewhere_is_one_line_without_control_characters() -> None:
    assert clean("a\x1b[31m\r\nb\u202ec") == "a [31m b c"
    assert clean("x" * 50, 10) == "x" * 9 + "…"


def test_only_derived_ids_are_shortened() -> None:
    assert short("0123456789abcdef" * 2) == "0123456789ab"
    assert short("chapter-with-a-long-name-of-its-own") == "chapter-with-a-long-name-of-its-own"


def test_counts_leave_out_zeros_and_keep_their_order() -> None:
    assert counts([("failed", 1), ("ready", 0), ("verified", 2)]) == "2 verified, 1 failed"


def test_columns_stand_under_each_other() -> None:
    assert list(columns([["a", "bb"], ["ccc", "d"]])) == ["a    bb", "ccc  d"]
    assert list(columns([])) == []


@pytest.mark.parametrize(
    ("name", "media_type", "found"),
    [
        ("result", "application/json", "result.json"),
        ("page", "text/markdown; charset=utf-8", "page.md"),
        ("report.md", "text/markdown", "report.md"),
        ("data", "application/octet-stream", "data.bin"),
        ("thing", "application/x-no-such-type", "thing"),
        ("../../etc/passwd", "text/plain", "_.._etc_passwd.txt"),
        ("..", "text/plain", "artifact.txt"),
        (".hidden", "text/plain", "hidden.txt"),
    ],
)
def test_artifacts_become_files_that_stay_in_their_folder(name: str, media_type: str, found: str) -> None:
    assert file_name(name, media_type) == found


class Standing:
    """A run as a progress display sees it."""

    def __init__(self) -> None:
        self.state, self.tasks, self.nobody = "running", {"verified": 1, "running": 2}, list[Unserved]()
        self.silent = self.command = ""

    def status(self) -> str:
        return self.state

    def counts(self) -> dict[str, int]:
        return self.tasks

    def unserved(self) -> list[Unserved]:
        return self.nobody

    def remedy(self) -> str:
        return self.command

    def trouble(self) -> str:
        return self.silent


def test_progress_is_told_when_something_changed(capsys: pytest.CaptureFixture[str]) -> None:
    now, time_s = Standing(), iter(range(100))
    plain = Plain(Meter("f" * 32, now, Settings(), lambda: float(next(time_s))))
    plain.tell()
    assert capsys.readouterr().err == "ffffffffffff running  1 of 3 verified, 2 running  0/s  1.0 s\n"
    plain.tell()
    assert capsys.readouterr().err == ""
    now.tasks = {"verified": 3}
    plain.tell()
    assert capsys.readouterr().err == "ffffffffffff running  3 of 3 verified  1/s  3.0 s\n"
    now.state = "paused"
    plain.tell()
    assert "to go on: dagbok resume ffffffffffff" in capsys.readouterr().err
    now.state, now.nobody = "running", [Unserved("worker", "x")]
    plain.tell()
    assert "no process serves worker 'x'\n" in capsys.readouterr().err
    now.nobody, now.command = [Unserved("pool", "there-0123456789")], "dagbok up --import there.py"
    plain.tell()
    told = capsys.readouterr().err
    assert told.endswith("no process serves pool 'there-0123456789': dagbok up --import there.py\n")
    now.silent = "owner not responding: process 7 has owned /data for 60 s and has been silent for 9 s"
    plain.tell()
    assert "owner not responding: process 7" in capsys.readouterr().err


async def test_on_a_terminal_a_command_that_helps_stands_whole_above_the_live_line_and_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    now, looks = Standing(), asyncio.Semaphore(0)
    now.nobody, now.command = [Unserved("pool", "there-0123456789")], "dagbok up --import there.py --import here.py"

    def trouble() -> str:
        looks.release()
        return ""

    monkeypatch.setattr(now, "trouble", trouble)
    with shown(Meter("f" * 32, now, Settings()), quiet=False):
        for _ in range(3):
            await looks.acquire()
    told = capsys.readouterr().err
    assert told.count(f"no process serves pool 'there-0123456789': {now.command}\n") == 1


def test_help_offers_no_option_that_a_command_cannot_use(call: Call, tmp_path: Path) -> None:
    for words in (("up",), ("artifact", "collect")):
        help = call(*words, "--help").out
        assert "--data" in help
        assert not [option for option in ("--kafka", "--tenant", "--database") if option in help]
        refused = call(*words, "--data", str(tmp_path), "--kafka", "127.0.0.1:1")
        assert (refused.status, "for data folders" in refused.err) == (2, True)
    assert "layer classes" in call("layers", "check", "--help").out
