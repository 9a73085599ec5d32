"""Graph configs in files: JSON, and YAML where PyYAML is installed (extra `yaml`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from dagbok.agents.layers.schemas import CompositorConfig, read_versioned

YAML_SUFFIXES = (".yaml", ".yml")
MAX_VALUES: Final = 100_000


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
        loader = yaml.SafeLoader(path.read_bytes().decode())
        document = loader.get_single_node()
        if _values(document, {}) <= MAX_VALUES:
            return None if document is None else loader.construct_document(document)
    except OSError:
        raise
    except RecursionError as deep:
        raise ValueError("it is nested too deeply") from deep
    except Exception as error:  # a tag over a text that it does not fit raises whatever its reader does
        raise ValueError(f"it is no YAML: {' '.join(str(error).split())}") from error
    raise ValueError(f"with its aliases written out it has more than {MAX_VALUES:,} values")


def _values(node: Any, known: dict[int, int]) -> int:
    """How many values a document has with aliases written out, which costs what they stand for when it is read."""
    if node is None or isinstance(node.value, str):
        return 1
    if id(node) not in known:
        known[id(node)] = MAX_VALUES + 1  # an alias of itself never ends
        parts = [each for entry in node.value for each in (entry if isinstance(entry, tuple) else (entry,))]
        known[id(node)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(node)]
