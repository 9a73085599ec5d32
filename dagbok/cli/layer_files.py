"""Checking and drawing graph configs of layers."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from dagbok.agents.layers import Compositor, CompositorConfig, Layer, PromptLayer
from dagbok.agents.layers.config_file import config_problems, config_schema, read_config_file
from dagbok.agents.layers.drawing import as_mermaid, as_svg, as_text
from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.preparing import missing_settings
from dagbok.agents.layers.problems import told
from dagbok.cli import say
from dagbok.cli.exits import Exit
from dagbok.cli.module_file import load
from dagbok.cli.options import Output, settle
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

DRAWN = {"text": as_text, "mermaid": as_mermaid, "svg": as_svg}


def check_file(file: Path, imports: list[str], settings: bool, output: Output | None) -> int:
    """Tell what is wrong with a config; 1 if something is."""
    _, how = settle(None, output)
    config = read_graph(file)
    problems = [*map(told, config_problems(config))]
    if imports and not problems:
        problems = _problems_with(config, [load(name) for name in imports], settings)
    if how.json:
        say.out_json({"layers": len(config.layers), "problems": problems})
    elif problems:
        for each in problems:
            say.out(each)
    else:
        say.out(f"{len(config.layers)} layers, nothing wrong")
    return Exit.FAILED if problems else Exit.SUCCEEDED


def draw_file(file: Path, form: str, output: Output | None) -> int:
    """Print a config as a drawing; with --json the drawing is a text in an object."""
    _, how = settle(None, output)
    drawn = DRAWN[form](read_graph(file))
    if how.json:
        say.out_json({"format": form, "graph": drawn})
    else:
        say.out(drawn)
    return Exit.SUCCEEDED


def print_schema(output: Output | None) -> int:
    """Print the JSON Schema of configs."""
    settle(None, output)
    say.out_json(config_schema())
    return Exit.SUCCEEDED


def read_graph(file: Path) -> CompositorConfig:
    """The config in a file. Raises `InvalidInput` (`usage`) for one that cannot be read."""
    try:
        return read_config_file(file)
    except OSError as error:
        said, advice = f"cannot read {file}: {error.strerror or error}", "name a graph config"
    except ModuleNotFoundError:
        said, advice = f"{file} is YAML, and PyYAML is not installed", "pip install 'dagbok[yaml]', or write JSON"
    except ValueError as error:
        said, advice = f"{file}: {told(error)}", "mend the file; dagbok layers schema prints its form"
    raise InvalidInput(said, code=Code.USAGE, advice=advice)


def _problems_with(config: CompositorConfig, modules: list[ModuleType], settings: bool) -> list[str]:
    try:
        compositor: Compositor = Compositor.from_config(config, providers=[*layer_types(modules)])
    except ExceptionGroup as several:
        return [told(each) for each in several.exceptions]
    except (KeyError, TypeError, ValueError) as one:
        return [told(one)]
    return [told(each) for each in missing_settings(compositor.nodes)] if settings else []


def layer_types(modules: list[ModuleType]) -> list[type[AnyLayer]]:
    """Classes with a type id, and the plain prompt layer, which needs no import."""
    found: dict[str, type[AnyLayer]] = {str(PromptLayer.type_id): PromptLayer}
    for module in modules:
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Layer) and each.type_id and hasattr(each, "deps_type"):
                found[each.type_id] = each
    return list(found.values())
