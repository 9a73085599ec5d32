"""The files of the golden logs, and how they are read."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

import msgspec

from dagbok.events.canonical import Json
from dagbok.projections.partition import PartitionState

FORMAT: Final = 3
"""The words that are written now: 1, the first ones; 2, with branches, repair, amendments and budgets; 3, with
sessions, and seals that say where their commit stands."""
FOLDER: Final = Path(__file__).parent


def log_file(format: int) -> Path:
    """One record of `events` a line: `text`, or `base64` for a value that is none."""
    return FOLDER / f"format_{format}.jsonl"


def state_file(format: int) -> Path:
    """The state that the log is folded to."""
    return FOLDER / f"format_{format}.state.json"


def formats() -> list[int]:
    """All formats that were ever released."""
    return sorted(int(path.stem.removeprefix("format_")) for path in FOLDER.glob("format_*.jsonl"))


def read_values(format: int) -> list[bytes]:
    """The record values of a golden log."""
    lines = log_file(format).read_text(encoding="utf-8").splitlines()
    return [_value(msgspec.json.decode(line, type=dict[str, str])) for line in lines]


def read_state(format: int) -> Json:
    """The state that was recorded with the log."""
    state: Json = msgspec.json.decode(state_file(format).read_bytes())
    return state


def state_text(state: PartitionState) -> str:
    """A state, to be read by people and compared by tests."""
    return msgspec.json.format(msgspec.json.encode(state, order="deterministic"), indent=1).decode() + "\n"


def _value(line: dict[str, str]) -> bytes:
    return line["text"].encode() if "text" in line else base64.b64decode(line["base64"])
