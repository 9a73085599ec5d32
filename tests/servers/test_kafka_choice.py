"""Which rung of the ladder is taken, for every outcome; no server is started."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from docker.errors import DockerException

from tests.servers.kafka import ADVICE, VARIABLE, rungs
from tests.servers.kafka_jars import java_and_maven, java_version
from tests.servers.ladder import NoServer, NotHere, first_that_applies

JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'


def no_engine() -> None:
    raise DockerException("Error while fetching server API version")


def no_answer() -> None:
    raise ConnectionRefusedError("engine stopped")


def answers() -> None:
    return None


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`programs(name, told)` puts a program that tells `told` (on standard error) on the path, empty at first."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name: str, told: str) -> None:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return put


def chosen(environment: Mapping[str, str], ping: Callable[[], None]) -> str:
    return first_that_applies("Kafka", rungs(environment, ping), "install one")[0]


@pytest.mark.parametrize("ping", [no_engine, answers])
def test_a_named_broker_goes_before_all(ping: Callable[[], None]) -> None:
    assert chosen({"KAFKA_BOOTSTRAP_SERVERS": "broker:9092"}, ping) == "environment"


@pytest.mark.parametrize("environment", [{}, {"KAFKA_BOOTSTRAP_SERVERS": " "}])
def test_a_docker_engine_that_answers_goes_before_java(
    environment: Mapping[str, str], programs: Callable[[str, str], None]
) -> None:
    programs("java", JAVA_17)
    programs("mvn", "")

    assert chosen(environment, answers) == "docker"


@pytest.mark.parametrize("ping", [no_engine, no_answer])
def test_java_serves_where_no_engine_answers(ping: Callable[[], None], programs: Callable[[str, str], None]) -> None:
    programs("java", JAVA_17)
    programs("mvn", "")

    assert chosen({}, ping) == "java"


def test_where_nothing_can_serve_the_test_fails_with_what_to_do(programs: Callable[[str, str], None]) -> None:
    with pytest.raises(NoServer) as failure:
        first_that_applies("Kafka", rungs({}, no_engine), "Install Java 17")

    told = str(failure.value)
    assert "Install Java 17" in told
    assert "environment: KAFKA_BOOTSTRAP_SERVERS is not set" in told
    assert "docker: no docker engine answers (DockerException)" in told
    assert "java: no java and mvn on the path" in told


def test_the_advice_names_every_way() -> None:
    for way in (VARIABLE, "docker engine", "Java 17", "Maven"):
        assert way in ADVICE


@pytest.mark.parametrize("missing", ["java", "mvn"])
def test_java_without_maven_is_no_way_and_the_other_way_round(
    missing: str, programs: Callable[[str, str], None]
) -> None:
    programs({"java": "mvn", "mvn": "java"}[missing], JAVA_17)

    with pytest.raises(NotHere, match="no java and mvn"):
        java_and_maven()


def test_a_java_that_is_too_old_is_no_way(programs: Callable[[str, str], None]) -> None:
    programs("java", 'openjdk version "11.0.2" 2019-01-15')
    programs("mvn", "")

    with pytest.raises(NotHere, match="Java 11 is older than 17"):
        java_and_maven()


@pytest.mark.parametrize(
    ("told", "version"),
    [(JAVA_17, 17), ('java version "1.8.0_392"', 8), ('openjdk version "21" 2023-09-19', 21), ("not found", 0)],
)
def test_the_version_of_java_is_read_from_what_it_tells(told: str, version: int) -> None:
    assert java_version(told) == version
