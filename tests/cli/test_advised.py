"""Advised commands mean, when they are pasted, what the command meant that advised them."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from dagbok.cli.advised import advised
from dagbok.cli.app import build
from dagbok.cli.cluster import Cluster, Stores
from dagbok.cli.options import Place, settle
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.settings import Settings
from tests.cli.conftest import Call
from tests.cli.programs import Program

URL = "postgresql://db/dagbok?schema=blue"
ON_KAFKA = Settings(
    kafka=KafkaSettings(bootstrap_servers="a:9092,b:9092"), artifacts="s3://bucket/blue", database=URL, tenant="acme"
)
OF_RUNS = [
    ("resume", "last"),
    ("limits", "last", "max_tokens=10"),
    ("resolve", "last", "part", "--note '…'"),
    ("show", "last", "--task", "part"),
    ("amend", "last", "--import flow.py"),
    ("artifact", "ls", "last"),
    ("dead-letters", "ls"),
    ("ls",),
    ("run", "FILE"),
]


def tokens(command: str) -> list[str]:
    """What a shell hands to `dagbok`."""
    name, *rest = shlex.split(command)
    assert name == "dagbok"
    return rest


def place(command: str) -> Place:
    """The options of a command, as it understands them."""
    _, bound, _ = build().parse_args(tokens(command), print_error=False, exit_on_error=False)
    found: Place = bound.arguments.get("place") or Place()
    return found


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ARTIFACTS", "DATABASE", "KAFKA_BOOTSTRAP_SERVERS", "KAFKA_PREFIX"):
        monkeypatch.delenv(f"DAGBOK_{name}", raising=False)


@pytest.mark.parametrize("words", OF_RUNS)
@pytest.mark.parametrize(
    "there",
    [
        Settings(data=Path("a folder/data").absolute()),
        Settings(data=Path("/elsewhere/data"), tenant="acme", project="web"),
        ON_KAFKA,
    ],
)
def test_a_command_about_a_run_is_about_the_same_run(there: Settings, words: tuple[str, ...], tmp_path: Path) -> None:
    if there.kafka is not None or not there.data.is_absolute():
        there = replace(there, data=tmp_path / "dagbok-data")
    assert settle(place(advised(there, *words)), None)[0] == there


def test_what_is_the_default_or_in_the_variables_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert advised(Settings(data=tmp_path / "dagbok-data"), "resume", "last") == "dagbok resume last"
    monkeypatch.setenv("DAGBOK_DATA", str(tmp_path / "other"))
    monkeypatch.setenv("DAGBOK_TENANT", "acme")
    assert advised(Settings(data=tmp_path / "other", tenant="acme"), "resume", "last") == "dagbok resume last"
    back = advised(Settings(data=tmp_path / "dagbok-data"), "resume", "last")
    assert back == "dagbok resume last --data dagbok-data --tenant local"


@pytest.mark.parametrize("role", ["scheduler", "worker", "projector", "doctor"])
def test_a_role_is_started_on_the_same_cluster(role: str) -> None:
    kafka = KafkaSettings(bootstrap_servers="a:9092", prefix="blue.")
    there = replace(ON_KAFKA, kafka=kafka)
    _, bound, _ = build().parse_args(tokens(advised(there, role)), print_error=False, exit_on_error=False)
    cluster: Cluster = bound.arguments["cluster"]
    stores: Stores = bound.arguments["stores"]
    assert (cluster.settings(), stores) == (kafka, Stores(ON_KAFKA.artifacts, ON_KAFKA.database))


def test_a_folder_is_served_for_all_tenants_and_looked_at_where_it_is(tmp_path: Path) -> None:
    there = Settings(data=tmp_path / "blue", tenant="acme")
    assert advised(there, "up", "--import FILE") == "dagbok up --import FILE --data blue"
    assert advised(there, "doctor") == "dagbok doctor --data blue"


def test_a_password_is_not_printed() -> None:
    there = replace(ON_KAFKA, database="postgresql://me:geheim@db/dagbok")
    assert "--database postgresql://me:…@db/dagbok" in advised(there, "show", "last").replace("'", "")


def _advice(text: str, start: str) -> str:
    """The command behind a word."""
    (found,) = re.findall(rf"{start}: (dagbok .+)$", text, re.MULTILINE)
    return str(found)


def test_what_a_run_in_another_place_advises_can_be_pasted(call: Call, program: Program) -> None:
    options = ("--tenant", "acme", "--project", "web")
    failed = call(*program.command("--how", "fail", *options))
    assert failed.status == 1
    assert call(*tokens(_advice(failed.out, "to go on with this one"))).status == 0
    shown = call(*program.look("show", "last", *options))
    serve = re.findall(r"dagbok up .+?(?= goes on)", shown.out)
    assert "--data" in serve[0]
    assert call(*program.look("pause", "last", *options)).status == 0
    paused = call(*program.look("show", "last", *options)).out
    assert call(*tokens(_advice(paused, "paused; to go on"))).status == 0


def test_a_refusal_names_a_command_that_can_be_pasted(call: Call, program: Program) -> None:
    assert call(*program.command("--tenant", "acme", "--quiet")).status == 0
    refused = call(*program.look("pause", "last", "--tenant", "acme"))
    (see,) = re.findall(r"see (dagbok show [^;:]+)", refused.err)
    assert call(*tokens(see)).status == 0
