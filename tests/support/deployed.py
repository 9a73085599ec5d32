"""What the files in `deploy/` may name: variables that dagbok reads, and commands that it has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Final

from dagbok.events.log.kafka_settings import PREFIX, KafkaSettings
from dagbok.settings import Settings

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
CHART: Final = DEPLOY / "helm" / "dagbok"


def variables() -> frozenset[str]:
    """All that dagbok reads: the settings, those of Kafka, and those of S3 as `docs/artifacts.md` lists them."""
    own = {f"DAGBOK_{field.name.upper()}" for field in fields(Settings)}
    kafka = {PREFIX + name.upper() for name in KafkaSettings.__struct_fields__}
    s3 = set(re.findall(r"`(AWS_[A-Z0-9_]+)`", (ROOT / "docs" / "artifacts.md").read_text()))
    return frozenset(own | kafka | s3)


@cache
def help_of(*command: str) -> str:
    """What `dagbok … --help` prints. Raises `CalledProcessError` when there is no such command."""
    program = Path(sys.executable).with_name("dagbok")
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    line = [str(program), *command, "--help"]
    return subprocess.run(line, capture_output=True, text=True, check=True, env=environment).stdout


def unknown_options(arguments: Sequence[str]) -> list[str]:
    """The options of a command line that its command does not have."""
    first = next((place for place, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    command, options = arguments[:first], [word for word in arguments[first:] if word.startswith("--")]
    known = set(re.findall(r"--[a-z0-9-]+", help_of(*command)))
    return [option for option in options if option not in known]
