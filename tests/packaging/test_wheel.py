"""What is built is what is in the tree: a backend that drops the links in `dagbok/` would ship an empty package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
LINKED = ("agents", "events", "projections")
FILES = ("pyproject.toml", "README.md", "LICENSE")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel built from it, from a copy: builds leave files behind."""
    tree = tmp_path_factory.mktemp("tree")
    for name in (*LINKED, "dagbok"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, tree)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."]
    done = subprocess.run(build, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return tree / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> ZipFile:
    (path,) = built.glob("dagbok-*-py3-none-any.whl")
    return ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return HeaderParser().parsestr(wheel.read(name).decode())


def modules_of_the_tree() -> set[str]:
    linked = {Path("dagbok", file.relative_to(ROOT)) for name in LINKED for file in (ROOT / name).rglob("*.py")}
    return {str(path) for path in linked} | {str(f.relative_to(ROOT)) for f in (ROOT / "dagbok").rglob("*.py")}


def test_the_wheel_has_every_module_under_the_import_root_and_nothing_else(wheel: ZipFile) -> None:
    modules = {name for name in wheel.namelist() if name.endswith(".py")}
    assert modules == modules_of_the_tree()
    for folder in LINKED:
        assert any(name.startswith(f"dagbok/{folder}/") for name in modules)


def test_the_wheel_says_that_it_is_typed(wheel: ZipFile) -> None:
    assert "dagbok/py.typed" in wheel.namelist()


def test_the_source_archive_holds_files_in_place_of_links(built: Path) -> None:
    (path,) = built.glob("dagbok-*.tar.gz")
    with tarfile.open(path) as archive:
        assert [member.name for member in archive if member.issym() or member.islnk()] == []


def test_the_metadata_names_version_license_and_the_oldest_python(metadata: Message) -> None:
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_the_lowest_python_of_the_classifiers_is_the_required_one(metadata: Message) -> None:
    classifiers = "\n".join(metadata.get_all("Classifier", []))
    numbered = re.findall(r"^Programming Language :: Python :: (\d+)\.(\d+)$", classifiers, flags=re.MULTILINE)
    versions = sorted((int(major), int(minor)) for major, minor in numbered)
    assert versions[0] == (3, 11)
    assert sys.version_info[:2] in versions


def test_requirements_have_lower_bounds_only(metadata: Message) -> None:
    """An upper bound of ours would keep a user from a fix; the tested versions are in requirements/."""
    requirements = [line.split(";")[0] for line in metadata.get_all("Requires-Dist", [])]
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    assert len(requirements) == len(PROJECT["dependencies"]) + len(extras)
    assert [r for r in requirements if ">=" not in r or any(sign in r for sign in ("<", "==", "~=", "!="))] == []


def test_the_command_is_installed(wheel: ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "dagbok = dagbok.cli:main" in wheel.read(name).decode()
