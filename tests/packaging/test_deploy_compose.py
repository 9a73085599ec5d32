"""`docker-compose.yml`, the cluster on one machine: what can be said of it without a container engine."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.servers.kafka_jars import POM
from tests.support.deployed import ROOT, unknown_options, variables

OTHERS = ("kafka", "postgres", "minio-folder", "minio", "bucket")
ROLES = ("scheduler", "worker", "verifier", "projector")
JOBS = ("minio-folder", "bucket", "topics")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SECRET = re.compile(r"PASSWORD|SECRET_ACCESS_KEY|MC_HOST|DATABASE")

every_service = pytest.mark.parametrize("name", SERVICES)
of_dagbok = pytest.mark.parametrize("name", ["topics", *ROLES])


def test_everything_that_dagbok_on_kafka_needs_is_there() -> None:
    assert {*OTHERS, *ROLES, "topics"} <= SERVICES.keys()


@every_service
def test_images_are_pinned_by_tag(name: str) -> None:
    _, _, tag = SERVICES[name]["image"].rpartition(":")
    assert tag not in ("", "latest")


def test_the_broker_is_the_one_that_the_tests_run() -> None:
    version = re.search(r"<artifactId>kafka_[\d.]+</artifactId>\s*<version>([\d.]+)</version>", POM.read_text())
    assert version is not None
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version[1]}"


@every_service
def test_roots_are_read_only_and_no_service_gains_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@every_service
def test_one_step_alone_is_root_and_it_ends_at_once(name: str) -> None:
    service = SERVICES[name]
    if name == "minio-folder":
        assert (service["entrypoint"][0], service["cap_add"], service["restart"]) == ("chown", ["CHOWN"], "on-failure")
    else:
        assert "cap_add" not in service
        ours = service["image"].startswith("dagbok:")  # of that image test_deploy.py says who runs it
        assert ours or int(service["user"].split(":")[0]) > 0


@every_service
def test_whatever_stays_is_started_again_and_says_how_it_is(name: str) -> None:
    service = SERVICES[name]
    if name in JOBS:
        assert service["restart"] == "on-failure"
    else:
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"


@every_service
def test_who_is_waited_for_can_be_waited_for(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        expected = "service_completed_successfully" if other in JOBS else "service_healthy"
        assert how["condition"] == expected, other


@every_service
def test_what_is_written_lies_on_volumes_that_are_declared(name: str) -> None:
    volumes = [mount.split(":")[0] for mount in SERVICES[name].get("volumes", [])]
    assert [v for v in volumes if not v.startswith((".", "$")) and v not in COMPOSE["volumes"]] == []


WRITTEN: dict[str, set[str]] = {
    "kafka": {"/tmp", "/opt/kafka/config", "/opt/kafka/logs", "/var/lib/kafka/data"},
    "postgres": {"/tmp", "/var/run/postgresql", "/var/lib/postgresql/data"},
    "minio-folder": {"/data"},
    "minio": {"/tmp", "/data"},
    "bucket": {"/tmp"},
    "prometheus": {"/prometheus"},
    "grafana": {"/tmp", "/var/lib/grafana"},
} | {name: {"/tmp"} for name in ("topics", *ROLES)}
"""Where the programs of each image write."""

OWNED = {"kafka", "postgres", "prometheus", "grafana"}
"""Services in whose images the folder of the volume belongs to the user that they run as: a new volume gets that."""


def tmpfs(name: str) -> dict[str, list[str]]:
    """Path and options of each."""
    mounts = [mount.partition(":") for mount in SERVICES[name].get("tmpfs", [])]
    return {path: options.split(",") if options else [] for path, _, options in mounts}


def volumes(name: str) -> dict[str, str]:
    """The volumes that are written: path and name."""
    mounts = [mount.split(":") for mount in SERVICES[name].get("volumes", [])]
    return {path: volume for volume, path, *how in mounts if how != ["ro"]}


@every_service
def test_whatever_a_program_writes_is_a_volume_or_in_memory(name: str) -> None:
    assert WRITTEN[name] - tmpfs(name).keys() - volumes(name).keys() == set()


@every_service
def test_a_tmpfs_may_be_written_by_the_user_of_the_service(name: str) -> None:
    """It gets the mode of its folder in the image, and root as its owner unless it is told another. /tmp is for all."""
    for path, options in tmpfs(name).items():
        if path != "/tmp":
            user, group = SERVICES[name]["user"].split(":")
            assert {f"uid={user}", f"gid={group}"} <= set(options), path
        assert [each for each in options if each.split("=")[0] not in ("uid", "gid", "mode", "size", "exec")] == []


@every_service
def test_a_volume_may_be_written_by_the_user_of_the_service(name: str) -> None:
    if name in OWNED or name in JOBS:
        return
    given = {volume: SERVICES[job].get("entrypoint", [])[1:2] for job in JOBS for volume in volumes(job).values()}
    assert [volume for volume in volumes(name).values() if given.get(volume) != [SERVICES[name]["user"]]] == []


def test_the_broker_may_load_the_library_that_it_unpacks_for_zstd() -> None:
    """Without a word, a tmpfs lets nothing in it be run or loaded."""
    assert "exec" in tmpfs("kafka")["/tmp"]


@every_service
def test_ports_are_open_to_this_machine_alone(name: str) -> None:
    assert [port for port in SERVICES[name].get("ports", []) if not port.startswith("127.0.0.1:")] == []


@every_service
def test_secrets_are_local_defaults_that_a_variable_replaces(name: str) -> None:
    environment = SERVICES[name].get("environment", {})
    secrets = {key: value for key, value in environment.items() if SECRET.search(key)}
    assert [key for key, value in secrets.items() if "${DAGBOK_LOCAL_PASSWORD:-" not in value] == []


@of_dagbok
def test_each_command_is_one_of_dagbok(name: str) -> None:
    command = SERVICES[name]["command"]
    assert command[0] == name
    assert unknown_options(command) == []


@of_dagbok
def test_each_variable_is_read_by_dagbok(name: str) -> None:
    assert set(SERVICES[name]["environment"]) - variables() == set()


@pytest.mark.parametrize("name", ROLES)
def test_health_is_asked_where_it_is_served(name: str) -> None:
    command, asked = SERVICES[name]["command"], SERVICES[name]["healthcheck"]["test"][-1]
    port = command[command.index("--health-port") + 1]
    assert f"http://127.0.0.1:{port}/health/ready" in asked


def test_no_syntax_that_docker_compose_1_29_cannot_read() -> None:
    newer = {"annotations", "attach", "develop", "gpus", "models", "post_start", "provider", "pull_policy"}
    assert [name for name, service in SERVICES.items() if newer & service.keys()] == []
    assert {"name", "include", "configs", "secrets", "models"} & COMPOSE.keys() == set()
