"""Checking and drawing graph configs of layers."""

from __future__ import annotations

from pathlib import Path

from dagbok.agents.layers import CompositorConfig
from dagbok.agents.layers.config_file import config_schema, read_config_file
from dagbok.agents.layers.drawing import as_mermaid, as_svg, as_text
from dagbok.agents.layers.graph import nodes_and_problems, place_problems
from dagbok.agents.layers.preparing import missing_settings
from dagbok.agents.layers.problems import told
from dagbok.cli import say
from dagbok.cli.exits import Exit
from dagbok.cli.layer_providers import makers
from dagbok.cli.options import Output, settle
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.extras import install

DRAWN = {"text": as_text, "mermaid": as_mermaid, "svg": as_svg}


def check_file(
    file: Path,
    imports: list[str],
    node_providers: list[str],
    providers: str | None,
    settings: bool,
    output: Output | None,
) -> int:
    """Tell all that is wrong with a config; 1 if something is."""
    _, how = settle(None, output)
    config = read_graph(file)
    if imports or node_providers or providers:
        given = makers(imports, node_providers, providers)
        nodes, found = nodes_and_problems(config, given.providers, given.node_providers)
        found += missing_settings(nodes) if settings else []
    else:
        found = [*place_problems(config.layers)]
    problems = [*map(told, found)]
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
        said, advice = f"{file} is YAML, and PyYAML is not installed", f"{install('yaml')}; or write JSON"
    except ValueError as error:
        said, advice = f"{file}: {told(error)}", "mend the file; dagbok layers schema prints its form"
    raise InvalidInput(said, code=Code.USAGE, advice=advice)
