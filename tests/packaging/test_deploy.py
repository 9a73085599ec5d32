"""The image, and the embedded service made of it: what can be said of them without a container engine."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.support.deployed import DEPLOY, ROOT, unknown_options

COMPOSE = DEPLOY / "embedded" / "docker-compose.yml"
DATA = "/data"


@pytest.fixture(scope="module")
def service() -> dict[str, Any]:
    compose = yaml.safe_load(COMPOSE.read_text())
    (only,) = compose["services"].values()
    assert isinstance(only, dict)
    return only


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as (instruction, arguments), comments left out."""
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    split = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return [(name, arguments) for name, arguments in split]


def last(instructions: list[tuple[str, str]], name: str) -> str:
    return [arguments for given, arguments in instructions if given == name][-1]


def test_the_service_is_built_from_the_dockerfile_that_is_there(service: dict[str, Any]) -> None:
    context = COMPOSE.parent / service["build"]["context"]
    assert context.resolve() == ROOT
    assert (context / service["build"]["dockerfile"]).is_file()


def test_the_log_outlives_the_container(service: dict[str, Any]) -> None:
    compose = yaml.safe_load(COMPOSE.read_text())
    mounts = dict(volume.split(":")[::-1] for volume in service["volumes"])
    assert mounts[DATA] in compose["volumes"]
    assert service["command"] == ["up", "--data", DATA]


def test_image_and_service_run_the_same_command(service: dict[str, Any], instructions: list[tuple[str, str]]) -> None:
    assert json.loads(last(instructions, "ENTRYPOINT")) == ["dagbok"]
    assert json.loads(last(instructions, "CMD")) == service["command"]


def test_the_command_line_knows_what_the_service_calls(service: dict[str, Any]) -> None:
    assert unknown_options(service["command"]) == []
    assert unknown_options(service["healthcheck"]["test"][2:]) == []


def test_the_container_does_not_run_as_root_and_cannot_become_it(
    service: dict[str, Any], instructions: list[tuple[str, str]]
) -> None:
    assert int(last(instructions, "USER")) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


def test_everything_that_the_image_copies_is_there_and_reaches_the_build(instructions: list[tuple[str, str]]) -> None:
    copied = [a.split()[:-1] for name, a in instructions if name == "COPY" and not a.startswith("--from")]
    sources = [source for group in copied for source in group]
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert allowed[1] == "*", "whatever is not named stays outside"
    assert not (DEPLOY / "Dockerfile.dockerignore").exists(), "BuildKit would read that one, older builders the other"
    assert [s for s in sources if not (ROOT / s).exists() or f"!{s}" not in allowed] == []


def test_images_are_pinned_by_tag(instructions: list[tuple[str, str]]) -> None:
    bases = [arguments.split()[0] for name, arguments in instructions if name == "FROM"]
    assert {base.rpartition(":")[2] for base in bases} & {"", "latest"} == set()
    assert all(":" in base for base in bases)


def test_packages_come_from_the_lock_and_by_their_hashes(instructions: list[tuple[str, str]]) -> None:
    steps = [part for name, arguments in instructions if name == "RUN" for part in arguments.split("&&")]
    fetching = [step for step in steps if "pip install" in step and "--no-index" not in step]
    assert fetching
    assert [step for step in fetching if "--require-hashes -r requirements/" not in step] == []
    assert [step for step in steps if "pip wheel" in step and "--no-build-isolation" not in step] == []
