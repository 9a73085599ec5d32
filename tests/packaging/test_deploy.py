"""What can be said about `deploy/` without a container engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DATA = "/data"


@pytest.fixture(scope="module")
def service() -> dict[str, Any]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    (only,) = compose["services"].values()
    assert isinstance(only, dict)
    return only


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as (instruction, arguments), comments left out."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    split = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return [(name, arguments) for name, arguments in split]


def last(instructions: list[tuple[str, str]], name: str) -> str:
    return [arguments for given, arguments in instructions if given == name][-1]


def test_the_service_is_built_from_the_dockerfile_that_is_there(service: dict[str, Any]) -> None:
    assert (ROOT / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


def test_the_log_outlives_the_container(service: dict[str, Any]) -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    mounts = dict(volume.split(":")[::-1] for volume in service["volumes"])
    assert mounts[DATA] in compose["volumes"]
    assert service["command"] == ["up", "--data", DATA]


def test_image_and_service_run_the_same_command(service: dict[str, Any], instructions: list[tuple[str, str]]) -> None:
    assert json.loads(last(instructions, "ENTRYPOINT")) == ["dagbok"]
    assert json.loads(last(instructions, "CMD")) == service["command"]


@pytest.mark.parametrize(("command", "options"), [("up", ["--data"]), ("ls", ["--data", "--json"])])
def test_the_command_line_knows_what_the_service_calls(command: str, options: list[str]) -> None:
    program = Path(sys.executable).with_name("dagbok")
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    shown = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=True, env=environment)
    assert [option for option in options if option not in shown.stdout] == []


def test_the_container_does_not_run_as_root_and_cannot_become_it(
    service: dict[str, Any], instructions: list[tuple[str, str]]
) -> None:
    assert int(last(instructions, "USER")) > 0
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


def test_everything_that_the_image_copies_is_there_and_reaches_the_build(instructions: list[tuple[str, str]]) -> None:
    copied = [a.split()[:-1] for name, a in instructions if name == "COPY" and not a.startswith("--from")]
    sources = [source for group in copied for source in group]
    allowed = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    assert [s for s in sources if not (ROOT / s).exists() or f"!{s}" not in allowed] == []
