"""Graph configs in files: JSON, and YAML where PyYAML is installed (extra `yaml`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dagbok.agents.layers.schemas import CompositorConfig, read_versioned

YAML_SUFFIXES = (".yaml", ".yml")


def read_config_file(path: Path) -> CompositorConfig:
    """The config in a file; its suffix says whether it is YAML.

    Raises:
        OSError: The file cannot be read.
        ModuleNotFoundError: It is YAML, and PyYAML is not installed.
        ValueError: It is malformed (also pydantic's ValidationError), or of another schema version.
    """
    return read_versioned(CompositorConfig, _of_yaml(path) if path.suffix in YAML_SUFFIXES else path.read_bytes())


def config_schema() -> dict[str, Any]:
    """The JSON Schema of a graph config."""
    return CompositorConfig.model_json_schema()


def _of_yaml(path: Path) -> Any:
    import yaml  # an extra: most configs are JSON

    try:
        return yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
