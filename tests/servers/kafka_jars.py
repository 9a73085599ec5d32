"""Apache Kafka's jars from Maven Central, fetched once per machine and version."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.servers.ladder import NotHere
from tests.servers.telling import tell

POM: Final = Path(__file__).with_name("kafka_pom.xml")
COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
OLDEST_JAVA: Final = 17
FETCH_TIMEOUT_S: Final = 600
TOLD: Final = "fetching Apache Kafka from Maven Central: one to five minutes, once on this machine"


def java_and_maven() -> tuple[str, str]:
    """The two programs. Raises `NotHere` when one is missing or Java is older than Kafka needs."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        raise NotHere("no java and mvn on the path")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    if (version := java_version(told)) < OLDEST_JAVA:
        raise NotHere(f"Java {version} is older than {OLDEST_JAVA}")
    return java, maven


def java_version(told: str) -> int:
    """The major version that `java -version` tells, 0 when it tells none: 8 for "1.8.0_392", 17 for "17.0.15"."""
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found.group(1)) if found else 0


def cache_folder() -> Path:
    """Where this machine keeps the jars of this version: outside the tree, named after what is in them."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dagbok" / "kafka" / hashlib.sha256(POM.read_bytes()).hexdigest()[:16]


def jars(maven: str, folder: Path | None = None, tell: Callable[[str], None] = tell) -> Path:
    """The folder with all jars; made on the first call, by one process of several that ask at once.

    `tell` is told before they are fetched. The folder appears whole or not at all. Raises `NotHere` when Maven cannot
    fetch them.
    """
    folder = folder or cache_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        if not folder.is_dir():
            tell(TOLD)
            _fetch(maven, folder)
    return folder


def _fetch(maven: str, folder: Path) -> None:
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    command = [maven, "-q", "-B", "-f", str(POM), COPY, "-DincludeScope=runtime", f"-DoutputDirectory={beside}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=FETCH_TIMEOUT_S, check=False
        )
        if done.returncode:
            raise NotHere(f"Maven could not fetch Apache Kafka:\n{(done.stdout + done.stderr)[-2000:]}")
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
