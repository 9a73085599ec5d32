"""Which way to a PostgreSQL server is taken, for every outcome; none is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from docker.errors import DockerException

from tests.servers.ladder import NoServer, first_that_applies
from tests.servers.postgres import ADVICE, VARIABLE, postgres_rungs
from tests.servers.postgres_system import find_programs


class Client:
    """A docker client. `answers`: there is an engine behind it."""

    def __init__(self, answers: bool) -> None:
        self._answers = answers
        self.closed = False

    def ping(self) -> bool:
        if not self._answers:
            raise ConnectionRefusedError("engine stopped")
        return True

    def close(self) -> None:
        self.closed = True


def no_client() -> Client:
    raise DockerException("Error while fetching server API version")


@pytest.fixture
def programs(tmp_path: Path) -> str:
    """A folder with PostgreSQL in it."""
    for name in ("initdb", "postgres"):
        (tmp_path / name).touch()
    return str(tmp_path)


def chosen(environment: Mapping[str, str], client: Client | None, *programs: str) -> str:
    rungs = postgres_rungs(environment, no_client if client is None else lambda: client, programs)
    return first_that_applies("PostgreSQL", rungs, ADVICE)[0]


@pytest.mark.parametrize("client", [None, Client(answers=True)])
def test_a_named_database_goes_before_all(client: Client | None, programs: str) -> None:
    assert chosen({VARIABLE: "postgresql://there/db"}, client, programs) == VARIABLE


@pytest.mark.parametrize("environment", [{}, {VARIABLE: " "}])
def test_a_docker_engine_that_answers_goes_before_the_system(environment: Mapping[str, str], programs: str) -> None:
    client = Client(answers=True)
    assert chosen(environment, client, programs) == "docker"
    assert client.closed


@pytest.mark.parametrize("client", [None, Client(answers=False)])
def test_the_system_serves_where_no_engine_answers(client: Client | None, programs: str) -> None:
    assert chosen({}, client, "nowhere", programs) == "system"


def test_where_nothing_can_serve_the_test_fails_with_what_to_do() -> None:
    with pytest.raises(NoServer) as failure:
        chosen({}, Client(answers=False), "nowhere")
    told = str(failure.value)
    assert ADVICE in told
    assert f"{VARIABLE}: {VARIABLE} is not set" in told
    assert "docker: no docker engine answers (ConnectionRefusedError)" in told
    assert "system: no initdb and postgres" in told


def test_the_advice_names_every_way() -> None:
    for way in (VARIABLE, "docker", "Debian's postgresql"):
        assert way in ADVICE


def test_a_folder_without_the_server_is_no_way(tmp_path: Path) -> None:
    (tmp_path / "initdb").touch()
    assert find_programs([str(tmp_path)]) is None
