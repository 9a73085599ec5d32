"""The jars: fetched once however many ask, whole or not at all."""

from __future__ import annotations

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.servers.kafka_jars import TOLD, cache_folder, jars
from tests.servers.ladder import NotHere

ROOT = Path(__file__).parents[2]
WRITES_TWO_JARS = """\
for option; do case "$option" in -DoutputDirectory=*) folder="${option#*=}" ;; esac; done
echo once >> "$(dirname "$0")/calls"
echo one > "$folder/one.jar"
/bin/sleep 0.1
echo two > "$folder/two.jar"
"""


def maven(folder: Path, script: str) -> str:
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_many_that_ask_at_once_find_all_jars_and_one_of_them_fetched_them(tmp_path: Path) -> None:
    program = maven(tmp_path, WRITES_TWO_JARS)
    told: list[tuple[str, bool]] = []

    def tell(line: str) -> None:
        told.append((line, (tmp_path / "calls").exists()))

    def ask(_: int) -> list[str]:
        return sorted(path.name for path in jars(program, tmp_path / "cache" / "key", tell).iterdir())

    with ThreadPoolExecutor(8) as many:
        assert list(many.map(ask, range(8))) == [["one.jar", "two.jar"]] * 8
    assert (tmp_path / "calls").read_text() == "once\n"
    assert told == [(TOLD, False)], "who waits for minutes is told once, and before"


def test_a_fetch_that_fails_leaves_nothing_and_the_next_one_may_succeed(tmp_path: Path) -> None:
    folder, told = tmp_path / "cache" / "key", list[str]()
    with pytest.raises(NotHere, match="no route to host"):
        jars(maven(tmp_path, "echo 'no route to host' >&2; exit 1"), folder, told.append)
    assert [path.name for path in folder.parent.iterdir()] == ["key.lock"]

    assert len(list(jars(maven(tmp_path, WRITES_TWO_JARS), folder, told.append).iterdir())) == 2


def test_without_a_terminal_it_is_told_on_standard_error() -> None:
    program = "from tests.servers.telling import tell; tell('wait')"
    ran = subprocess.run(
        [sys.executable, "-c", program], start_new_session=True, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (ran.stdout, ran.stderr) == ("", "wait\n")


def test_the_cache_lies_where_this_user_keeps_caches_and_is_named_after_the_pom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache_folder().parent == tmp_path / "dagbok" / "kafka"
    assert len(cache_folder().name) == 16
