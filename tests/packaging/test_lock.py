"""The lock: exact, verified by hash, and free of any place to fetch from, so that it works behind every mirror."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("runtime.txt", "dev.txt", "lightagent.txt", "deploy.txt", "image.txt")
DEPLOYED = ("kafka", "otel", "postgres", "s3")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def read(lock: str) -> dict[str, str]:
    """Name → everything after it up to the next name, of each locked package."""
    text = (ROOT / "requirements" / lock).read_text()
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    return {re.split(r"[=\s]", block, maxsplit=1)[0]: block for block in blocks}


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_and_hashed(lock: str) -> None:
    packages = read(lock)
    assert packages
    unpinned = [n for n, block in packages.items() if not re.match(rf"{n}==\S+ (; .+ )?\\\n +--hash=sha256:", block)]
    assert unpinned == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_place_is_named(lock: str) -> None:
    lines = (ROOT / "requirements" / lock).read_text().splitlines()
    assert [line for line in lines if "://" in line or line.startswith("-")] == []


def test_what_the_project_requires_is_locked() -> None:
    runtime = {name_of(r) for r in PYPROJECT["project"]["dependencies"]}
    development = {name_of(r) for r in PYPROJECT["dependency-groups"]["dev"]}
    assert runtime <= read("runtime.txt").keys()
    assert runtime | development <= read("dev.txt").keys()
    extras = PYPROJECT["project"]["optional-dependencies"]
    beside_each_other = [r for name, wanted in extras.items() if name != "lightagent" for r in wanted]
    assert {name_of(r) for r in beside_each_other} <= read("dev.txt").keys()
    assert runtime | {name_of(r) for r in extras["lightagent"]} <= read("lightagent.txt").keys()
    assert runtime | {name_of(r) for name in DEPLOYED for r in extras[name]} <= read("deploy.txt").keys()
    assert {name_of(r) for r in PYPROJECT["dependency-groups"]["image"]} <= read("image.txt").keys()


@pytest.mark.parametrize("lock", ["deploy.txt", "image.txt"])
def test_what_is_deployed_is_what_was_tested(lock: str) -> None:
    tested = read("dev.txt")
    assert {name: tested[name].split(" ", 1)[0] for name in read(lock)} == {
        name: block.split(" ", 1)[0] for name, block in read(lock).items()
    }


@pytest.mark.parametrize("lock", ["dev.txt", "lightagent.txt", "deploy.txt"])
def test_users_and_developers_run_the_same_versions(lock: str) -> None:
    development = read(lock)
    pins = {name: block.split(" ", 1)[0] for name, block in read("runtime.txt").items()}
    assert {name: development[name].split(" ", 1)[0] for name in pins} == pins
