"""A PostgreSQL server for tests: the one that `DAGBOK_TEST_DATABASE_URL` names (a database, whose user may create
schemas), one in a container, or the system's own, started here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from tests.servers.ladder import NotHere, Rung, docker_answers, first_that_applies, named
from tests.servers.postgres_system import SystemPostgres, find_programs, may_start

VARIABLE: Final = "DAGBOK_TEST_DATABASE_URL"
ADVICE: Final = f"Install Debian's postgresql, start docker, or name a database in {VARIABLE}."
IMAGE: Final = "postgres:16"


class DockerClient(Protocol):
    """What is asked of the client library."""

    def ping(self) -> object: ...

    def close(self) -> object: ...


def open_postgres() -> tuple[str, AbstractContextManager[str]]:
    """The rung that applies, and the URL of its database. Raises `NoServer`."""
    return first_that_applies("PostgreSQL", postgres_rungs(os.environ), ADVICE)


def postgres_rungs(
    environment: Mapping[str, str],
    docker: Callable[[], DockerClient] | None = None,
    programs: Sequence[str] | None = None,
) -> list[Rung[str]]:
    """The ways to a server, in their order. `docker` makes a client; `programs`: folders where PostgreSQL may be."""

    def by_name() -> AbstractContextManager[str]:
        return _there(named(environment, VARIABLE))

    def in_docker() -> AbstractContextManager[str]:
        docker_answers(lambda: _ping(docker or _docker_client))
        return _container()

    def of_system() -> AbstractContextManager[str]:
        folder = find_programs(programs)
        if folder is None:
            raise NotHere("no initdb and postgres below /usr/lib/postgresql, nor on the path")
        if not may_start():
            raise NotHere("root cannot run it, and there is no user postgres who could")
        return _started(SystemPostgres(folder))

    return [Rung(VARIABLE, by_name), Rung("docker", in_docker), Rung("system", of_system)]


@contextmanager
def _there(url: str) -> Iterator[str]:
    yield url


@contextmanager
def _started(server: SystemPostgres) -> Iterator[str]:
    with server:
        yield server.url


@contextmanager
def _container() -> Iterator[str]:
    from testcontainers.community.postgres import PostgresContainer

    with PostgresContainer(IMAGE, driver=None) as container:
        yield container.get_connection_url()


def _docker_client() -> DockerClient:
    import docker  # here: it takes a third of a second and is needed on this rung alone

    client: DockerClient = docker.from_env()
    return client


def _ping(connect: Callable[[], DockerClient]) -> None:
    client = connect()
    try:
        client.ping()
    finally:
        client.close()
