"""Graph configs in files: JSON, and YAML where PyYAML is installed (extra `dagbok[yaml]`)."""

from __future__ import annotations

from collections.abc import Iterator
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


def config_problems(config: CompositorConfig) -> Iterator[Exception]:
    """What is wrong with a config whoever makes its layers: names and targets. Types and fields need providers."""
    names, before = {each.name for each in config.layers}, set[str]()
    for each in config.layers:
        if not each.name:
            yield ValueError("Layer node name must not be empty")
        elif each.name in before:
            yield ValueError(f"Duplicate layer name '{each.name}'")
        for key, target in each.deps.items():
            if target not in names:
                yield ValueError(f"Layer '{each.name}' depends on undefined layer names: {target}")
            elif target not in before:
                said = f"dependencies must target preceding layer nodes: {key}->{target}"
                yield ValueError(f"Layer '{each.name}': {said}")
        before.add(each.name)


def _of_yaml(path: Path) -> Any:
    import yaml  # an extra: most configs are JSON

    try:
        return yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
